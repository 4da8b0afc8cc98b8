package main

import (
	"path"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

type kustomizeInput struct {
	Files  map[string]string `json:"files"`
	Folder string            `json:"folder"`
}

func init() {
	// kustomize: what `kustomize build FOLDER` prints for files in memory.
	about("kustomize", func(input kustomizeInput) (any, error) {
		disk := filesys.MakeFsInMemory()
		for name, content := range input.Files {
			if err := disk.MkdirAll(path.Dir(path.Join("/", name))); err != nil {
				return nil, err
			}
			if err := disk.WriteFile(path.Join("/", name), []byte(content)); err != nil {
				return nil, err
			}
		}
		options := krusty.MakeDefaultOptions()
		options.Reorder = krusty.ReorderOptionLegacy
		built, err := krusty.MakeKustomizer(options).Run(disk, path.Join("/", input.Folder))
		if err != nil {
			return nil, err
		}
		text, err := built.AsYaml()
		return string(text), err
	})
}
