package main

import (
	masterminds "github.com/Masterminds/semver/v3"
	blang "github.com/blang/semver/v4"
)

// matching asks which of the versions a range or constraint lets through.
type matching struct {
	Text     string   `json:"text"`
	Versions []string `json:"versions"`
}

// outcome of one version: whether it matches, or that asking made the library panic.
const (
	matches = "yes"
	differs = "no"
	panics  = "panic"
)

func init() {
	about("semver.parse", func(text string) (any, error) {
		version, err := blang.Parse(text)
		return version.String(), err
	})
	about("semver.parse-tolerant", func(text string) (any, error) {
		version, err := blang.ParseTolerant(text)
		return version.String(), err
	})
	about("semver.compare", func(pair [2]string) (any, error) {
		left, err := blang.Parse(pair[0])
		if err != nil {
			return nil, err
		}
		right, err := blang.Parse(pair[1])
		return left.Compare(right), err
	})
	about("semver.range", func(asked matching) (any, error) {
		inRange, err := blang.ParseRange(asked.Text)
		if err != nil {
			return nil, err
		}
		return answers(asked.Versions, func(text string) bool { return inRange(blang.MustParse(text)) }), nil
	})
	about("semver.loose", func(text string) (any, error) {
		version, err := masterminds.NewVersion(text)
		if err != nil {
			return nil, err
		}
		return version.String(), nil
	})
	about("semver.constraint", func(asked matching) (any, error) {
		constraint, err := masterminds.NewConstraint(asked.Text)
		if err != nil {
			return nil, err
		}
		return answers(asked.Versions, func(text string) bool {
			return constraint.Check(masterminds.MustParse(text))
		}), nil
	})
}

func answers(versions []string, check func(string) bool) []string {
	replies := make([]string, len(versions))
	for i, version := range versions {
		replies[i] = answerSafely(version, check)
	}
	return replies
}

func answerSafely(version string, check func(string) bool) (reply string) {
	defer func() {
		if recover() != nil {
			reply = panics
		}
	}()
	if check(version) {
		return matches
	}
	return differs
}
