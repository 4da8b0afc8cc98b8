package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing/fstest"
	gotemplate "text/template"

	"github.com/joelanford/ignore"
	"github.com/operator-framework/operator-registry/alpha/action"
	"github.com/operator-framework/operator-registry/alpha/action/migrations"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/template"
	"github.com/sirupsen/logrus"
)

// catalogText is a catalog stream in base64, because it may hold bytes that JSON cannot.
type catalogText struct {
	Base64 string `json:"base64"`
	Output string `json:"output"`
	Level  string `json:"level"`
}

func writeCatalog(cfg declcfg.DeclarativeConfig, format string) (any, error) {
	var out bytes.Buffer
	write := declcfg.WriteJSON
	if format == "yaml" {
		write = declcfg.WriteYAML
	}
	if err := write(cfg, &out); err != nil {
		return nil, err
	}
	return base64.StdEncoding.EncodeToString(out.Bytes()), nil
}

func migrated(cfg *declcfg.DeclarativeConfig, level string) error {
	if level == "" {
		return nil
	}
	steps, err := migrations.NewMigrations(level)
	if err != nil {
		return err
	}
	return steps.Migrate(cfg)
}

type templateText struct {
	Template string   `json:"template"`
	Bundles  []string `json:"bundles"` // olm.bundle blobs, found by their image
	Output   string   `json:"output"`
}

func renderTemplate(in templateText) (any, error) {
	byImage := map[string]declcfg.Bundle{}
	for _, text := range in.Bundles {
		cfg, err := declcfg.LoadReader(strings.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("oracle: %w", err)
		}
		byImage[cfg.Bundles[0].Image] = cfg.Bundles[0]
	}
	fetch := func(_ context.Context, image string) (*declcfg.DeclarativeConfig, error) {
		bundle, known := byImage[image]
		if !known {
			return nil, fmt.Errorf("no bundle %q", image)
		}
		return &declcfg.DeclarativeConfig{Bundles: []declcfg.Bundle{bundle}}, nil
	}
	made, reader, err := template.NewRegistry().CreateTemplateBySchema(strings.NewReader(in.Template), fetch)
	if err != nil {
		return nil, err
	}
	cfg, err := made.Render(context.Background(), reader)
	if err != nil {
		return nil, err
	}
	return writeCatalog(*cfg, in.Output)
}

type bundleFiles struct {
	Files  map[string]string `json:"files"` // base64 by path
	Image  string            `json:"image"`
	Level  string            `json:"level"`
	Output string            `json:"output"`
}

// renderBundle does what `opm render DIRECTORY --alpha-image-ref-template IMAGE` does.
func renderBundle(in bundleFiles) (any, error) {
	root, err := os.MkdirTemp("", "oracle-bundle-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	for path, encoded := range in.Files {
		data, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return nil, err
		}
	}
	level := in.Level
	if level == "" {
		level = migrations.NoMigrations
	}
	steps, err := migrations.NewMigrations(level)
	if err != nil {
		return nil, err
	}
	logrus.SetOutput(io.Discard)
	render := action.Render{Refs: []string{root}, Migrations: steps}
	if in.Image != "" {
		if render.ImageRefTemplate, err = gotemplate.New("image").Parse(in.Image); err != nil {
			return nil, err
		}
	}
	cfg, err := render.Run(context.Background())
	if err != nil {
		return nil, err
	}
	return writeCatalog(*cfg, in.Output)
}

type ignoreCase struct {
	Files map[string]string `json:"files"` // path to content; those named .indexignore hold patterns
}

func init() {
	about("catalog.render", func(in catalogText) (any, error) {
		data, err := base64.StdEncoding.DecodeString(in.Base64)
		if err != nil {
			return nil, err
		}
		cfg, err := declcfg.LoadReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		if err := migrated(cfg, in.Level); err != nil {
			return nil, err
		}
		return writeCatalog(*cfg, in.Output)
	})
	about("catalog.template", renderTemplate)
	about("catalog.bundle", renderBundle)
	about("catalog.ignored", func(in ignoreCase) (any, error) {
		tree := fstest.MapFS{}
		for path, content := range in.Files {
			tree[path] = &fstest.MapFile{Data: []byte(content)}
		}
		matcher, err := ignore.NewMatcher(tree, ".indexignore")
		if err != nil {
			return nil, err
		}
		ignored := map[string]bool{}
		err = fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				ignored[path] = matcher.Match(path, false)
			}
			return err
		})
		return ignored, err
	})
	about("sort.slice", func(keys []string) (any, error) {
		order := make([]int, len(keys))
		for index := range order {
			order[index] = index
		}
		sort.Slice(order, func(i, j int) bool { return keys[order[i]] < keys[order[j]] })
		return order, nil
	})
}
