package main

import (
	"context"
	"testing/fstest"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
)

// judgement is the verdict on a catalog: the stage that refused it, empty if none did, and why.
type judgement struct {
	Stage   string `json:"stage"`
	Message string `json:"message"`
}

func init() {
	// What `opm validate` does with a folder, given as file contents by path.
	about("catalogs.validate", func(files map[string]string) (any, error) {
		folder := fstest.MapFS{}
		for path, content := range files {
			folder[path] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
		}
		config, err := declcfg.LoadFS(context.Background(), folder, declcfg.WithConcurrency(1))
		if err != nil {
			return judgement{Stage: "load", Message: err.Error()}, nil
		}
		if _, err := declcfg.ConvertToModel(*config); err != nil {
			return judgement{Stage: "model", Message: err.Error()}, nil
		}
		return judgement{}, nil
	})
}
