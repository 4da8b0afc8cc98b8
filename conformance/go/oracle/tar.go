package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
)

// entry is one member of an archive as Go's reader sees it; names and contents are bytes, so base64 in JSON.
type entry struct {
	Name    []byte `json:"name"`
	Target  []byte `json:"target"`
	Kind    string `json:"kind"`
	Content []byte `json:"content"`
}

func init() {
	about("tar.members", func(archive []byte) (any, error) {
		reader := tar.NewReader(bytes.NewReader(archive))
		found := []entry{}
		for {
			header, err := reader.Next()
			if errors.Is(err, io.EOF) {
				return found, nil
			}
			if err != nil {
				return nil, err
			}
			content, err := io.ReadAll(io.LimitReader(reader, 1<<20))
			if err != nil {
				return nil, err
			}
			kind := string(rune(header.Typeflag))
			found = append(found, entry{[]byte(header.Name), []byte(header.Linkname), kind, content})
		}
	})
}
