package main

import (
	// The digest library knows only the hashes that the program links, and opm links these.
	_ "crypto/sha256"
	_ "crypto/sha512"

	"github.com/distribution/reference"
	containers "go.podman.io/image/v5/docker/reference"
)

// named is what both grammars tell about a reference.
type named struct {
	Domain   string `json:"domain"`
	Path     string `json:"path"`
	Tag      string `json:"tag"`
	Digest   string `json:"digest"`
	Text     string `json:"text"`
	Familiar string `json:"familiar"`
	Pinned   string `json:"pinned"`
}

func init() {
	about("references.distribution", func(text string) (any, error) {
		parsed, err := reference.ParseNormalizedNamed(text)
		if err != nil {
			return nil, err
		}
		pinned, err := reference.ParseDockerRef(text)
		if err != nil {
			return nil, err
		}
		found := named{
			Domain: reference.Domain(parsed), Path: reference.Path(parsed),
			Text: parsed.String(), Familiar: reference.FamiliarString(parsed), Pinned: pinned.String(),
		}
		if tagged, ok := parsed.(reference.Tagged); ok {
			found.Tag = tagged.Tag()
		}
		if digested, ok := parsed.(reference.Digested); ok {
			found.Digest = digested.Digest().String()
		}
		return found, nil
	})
	about("references.containers", func(text string) (any, error) {
		parsed, err := containers.ParseNormalizedNamed(text)
		if err != nil {
			return nil, err
		}
		pinned, err := containers.ParseDockerRef(text)
		if err != nil {
			return nil, err
		}
		found := named{
			Domain: containers.Domain(parsed), Path: containers.Path(parsed),
			Text: parsed.String(), Familiar: containers.FamiliarString(parsed), Pinned: pinned.String(),
		}
		if tagged, ok := parsed.(containers.Tagged); ok {
			found.Tag = tagged.Tag()
		}
		if digested, ok := parsed.(containers.Digested); ok {
			found.Digest = digested.Digest().String()
		}
		return found, nil
	})
	about("references.canonical", func(text string) (any, error) {
		_, err := containers.ParseNamed(text)
		return err == nil, nil
	})
}
