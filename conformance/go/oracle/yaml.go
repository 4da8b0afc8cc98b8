package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Questions about the bytes of YAML and JSON. Texts travel as base64 (a Go []byte), because they need not be UTF-8.

type jsonAsked struct {
	Value  json.RawMessage `json:"value"`
	HTML   bool            `json:"html"`
	Indent int             `json:"indent"`
	Floats bool            `json:"floats"` // numbers go through float64, as in any generic round trip
}

func init() {
	about("yaml marshal", func(raw json.RawMessage) (any, error) {
		value, err := exactValue(raw)
		if err != nil {
			return nil, err
		}
		return yaml.Marshal(value)
	})
	about("yaml to json", func(text []byte) (any, error) { return yaml.YAMLToJSON(text) })
	about("yaml to json, strictly", func(text []byte) (any, error) { return yaml.YAMLToJSONStrict(text) })
	about("json marshal", marshalJSON)
	about("json marshal of bytes", func(text []byte) (any, error) {
		return json.Marshal(map[string][]string{string(text): {string(text)}})
	})
	about("json stream", splitJSON)
}

func marshalJSON(asked jsonAsked) (any, error) {
	var value any
	var err error
	if asked.Floats {
		err = json.Unmarshal(asked.Value, &value)
	} else {
		value, err = exactValue(asked.Value)
	}
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(asked.HTML)
	encoder.SetIndent("", strings.Repeat(" ", asked.Indent))
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func splitJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	values := [][]byte{}
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return values, nil
		} else if err != nil {
			return nil, err
		}
		values = append(values, raw)
	}
}

// exactValue decodes JSON with integers kept as integers.
func exactValue(raw []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return withNumbers(value)
}

func withNumbers(value any) (any, error) {
	var err error
	switch typed := value.(type) {
	case map[string]any:
		for key, item := range typed {
			if typed[key], err = withNumbers(item); err != nil {
				return nil, err
			}
		}
	case []any:
		for index, item := range typed {
			if typed[index], err = withNumbers(item); err != nil {
				return nil, err
			}
		}
	case json.Number:
		if number, err := strconv.ParseInt(typed.String(), 10, 64); err == nil {
			return number, nil
		}
		if number, err := strconv.ParseUint(typed.String(), 10, 64); err == nil {
			return number, nil
		}
		return typed.Float64()
	}
	return value, nil
}
