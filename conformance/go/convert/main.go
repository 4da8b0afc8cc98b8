// Command convert renders registry+v1 bundles with operator-controller's own packages, so that our tests can
// compare. Those packages are internal: conformance/grafted.py builds this file inside a copy of their module.
//
// It reads one JSON object per line and writes one per line: {"objects": [...]}, or {"error": "...", "stage": ...}
// where the stage is "read" or "render".
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"testing/fstest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-framework/operator-controller/internal/operator-controller/config"
	"github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/bundle/source"
	"github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/render"
	"github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/render/certproviders"
	"github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/render/registryv1"
)

type question struct {
	// Either a directory, or the files themselves by path.
	Directory        string                   `json:"directory"`
	Files            map[string][]byte        `json:"files"`
	InstallNamespace string                   `json:"installNamespace"`
	WatchNamespaces  []string                 `json:"watchNamespaces"`
	Certificates     string                   `json:"certificates"`
	DeploymentConfig *config.DeploymentConfig `json:"deploymentConfig"`
}

type answer struct {
	Objects []client.Object `json:"objects,omitempty"`
	Error   string          `json:"error,omitempty"`
	Stage   string          `json:"stage,omitempty"`
}

var providers = map[string]render.CertificateProvider{
	"":             nil,
	"cert-manager": certproviders.CertManagerCertificateProvider{},
	"service-ca":   certproviders.OpenshiftServiceCaCertificateProvider{},
}

func convert(line []byte) (out answer) {
	stage := "question"
	defer func() {
		if problem := recover(); problem != nil {
			out = answer{Error: fmt.Sprintf("panic: %v", problem), Stage: stage}
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Error: err.Error(), Stage: stage}
	}
	stage = "read"
	var files fs.FS = os.DirFS(asked.Directory)
	if asked.Files != nil {
		given := fstest.MapFS{}
		for path, data := range asked.Files {
			given[path] = &fstest.MapFile{Data: data}
		}
		files = given
	}
	bundle, err := source.FromFS(files).GetBundle()
	if err != nil {
		return answer{Error: err.Error(), Stage: stage}
	}
	stage = "render"
	objects, err := registryv1.Renderer.Render(
		bundle,
		asked.InstallNamespace,
		render.WithTargetNamespaces(asked.WatchNamespaces...),
		render.WithCertificateProvider(providers[asked.Certificates]),
		render.WithDeploymentConfig(asked.DeploymentConfig),
	)
	if err != nil {
		return answer{Error: err.Error(), Stage: stage}
	}
	return answer{Objects: objects}
}

func main() {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	for {
		line, err := input.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			encoded, problem := json.Marshal(convert(line))
			if problem != nil {
				encoded, _ = json.Marshal(answer{Error: problem.Error(), Stage: "encode"})
			}
			output.Write(append(encoded, '\n'))
			output.Flush()
		}
		if err != nil {
			return
		}
	}
}
