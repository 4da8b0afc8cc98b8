package main

import (
	"os"
	"path/filepath"

	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/docker/config"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
)

// configured asks something under a configuration of its own: two files and nothing of this machine.
func configured(registries, auths string, ask func(*types.SystemContext) (any, error)) (any, error) {
	directory, err := os.MkdirTemp("", "oracle-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	conf, auth := filepath.Join(directory, "registries.conf"), filepath.Join(directory, "auth.json")
	if err := os.WriteFile(conf, []byte(registries), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(auth, []byte(auths), 0o600); err != nil {
		return nil, err
	}
	return ask(&types.SystemContext{
		SystemRegistriesConfPath:    conf,
		SystemRegistriesConfDirPath: filepath.Join(directory, "none"),
		AuthFilePath:                auth,
	})
}

// sources says where one reference is read from.
func sources(system *types.SystemContext, text string) (any, error) {
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return nil, err
	}
	registry, err := sysregistriesv2.FindRegistry(system, named.String())
	if err != nil {
		return nil, err
	}
	if registry == nil {
		return []string{named.String()}, nil
	}
	if registry.Blocked {
		return "blocked", nil
	}
	found, err := registry.PullSourcesFromReference(named)
	if err != nil {
		return nil, err
	}
	texts := []string{}
	for _, source := range found {
		text := source.Reference.String()
		if source.Endpoint.Insecure {
			text += " insecure"
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func init() {
	type lookups struct {
		Conf       string   `json:"conf"`
		References []string `json:"references"`
	}
	about("containers.sources", func(asked lookups) (any, error) {
		return configured(asked.Conf, "{}", func(system *types.SystemContext) (any, error) {
			answers := []any{}
			for _, text := range asked.References {
				answer, err := sources(system, text)
				if err != nil {
					return nil, err
				}
				answers = append(answers, answer)
			}
			return answers, nil
		})
	})

	type keys struct {
		Auths        string   `json:"auths"`
		Repositories []string `json:"repositories"`
	}
	about("containers.credentials", func(asked keys) (any, error) {
		return configured("", asked.Auths, func(system *types.SystemContext) (any, error) {
			answers := [][]string{}
			for _, repository := range asked.Repositories {
				found, err := config.GetCredentials(system, repository)
				if err != nil {
					return nil, err
				}
				answers = append(answers, []string{found.Username, found.Password, found.IdentityToken})
			}
			return answers, nil
		})
	})
}
