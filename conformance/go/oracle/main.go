// Command oracle answers questions with the original Go libraries, so that our tests can compare.
//
// It reads one JSON object per line, {"ask": NAME, "input": ...}, and writes one per line: {"output": ...} or
// {"error": "..."}. Each other file of this package adds questions of one field.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

type question struct {
	Ask   string          `json:"ask"`
	Input json.RawMessage `json:"input"`
}

type answer struct {
	Output any    `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`
}

var questions = map[string]func(json.RawMessage) (any, error){}

// about registers a question whose input has type T.
func about[T any](name string, reply func(T) (any, error)) {
	questions[name] = func(raw json.RawMessage) (any, error) {
		var input T
		if err := json.Unmarshal(raw, &input); err != nil {
			return nil, fmt.Errorf("oracle: bad input: %w", err)
		}
		return reply(input)
	}
}

func reply(line []byte) (out answer) {
	defer func() {
		if problem := recover(); problem != nil {
			out = answer{Error: fmt.Sprintf("panic: %v", problem)}
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Error: "oracle: " + err.Error()}
	}
	handler, known := questions[asked.Ask]
	if !known {
		return answer{Error: "oracle: unknown question " + asked.Ask}
	}
	output, err := handler(asked.Input)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Output: output}
}

func main() {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	for {
		line, err := input.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var encoded bytes.Buffer
			encoder := json.NewEncoder(&encoded)
			encoder.SetEscapeHTML(false)
			if problem := encoder.Encode(reply(line)); problem != nil {
				encoded.Reset()
				fmt.Fprintf(&encoded, "{\"error\": %q}\n", problem.Error())
			}
			output.Write(encoded.Bytes())
			output.Flush()
		}
		if err != nil {
			return
		}
	}
}
