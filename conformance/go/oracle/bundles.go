package main

// Questions about registry+v1 bundles: what operator-registry says of their form, what operator-framework/api
// says of their content, check by check, and what opm's renderer reads from them.

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/api/pkg/validation/errors"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
	"github.com/operator-framework/operator-registry/pkg/image"
	registrybundle "github.com/operator-framework/operator-registry/pkg/lib/bundle"
	"github.com/operator-framework/operator-registry/pkg/registry"
	"github.com/sirupsen/logrus"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type bundleQuestion struct {
	Files      map[string][]byte              `json:"files"`
	Optional   []string                       `json:"optional"`
	Options    map[string]string              `json:"options"`
	Categories string                         `json:"categories"` // content of a categories file
	Index      string                         `json:"index"`      // content of an index image file
	Platforms  map[string][]map[string]string `json:"platforms"`  // what inspecting an image shows
}

type bundleVerdict struct {
	Check   string `json:"check"`
	Level   string `json:"level"`
	Message string `json:"message"`
}

type renderedBundle struct {
	Name         string            `json:"name"`
	Package      string            `json:"package"`
	Channels     []string          `json:"channels"`
	Default      string            `json:"default"`
	Objects      []json.RawMessage `json:"objects"`
	Dependencies []json.RawMessage `json:"dependencies"`
	Error        string            `json:"error"`
}

type bundleAnswer struct {
	Format   []string        `json:"format"`   // ValidateBundleFormat
	Load     []string        `json:"load"`     // GetBundleFromDir
	Verdicts []bundleVerdict `json:"verdicts"` // the checks of operator-sdk, required and optional
	Content  []string        `json:"content"`  // opm's ValidateBundleContent
	Rendered renderedBundle  `json:"rendered"` // the input of opm render
}

var optionalBundleChecks = map[string]interfaces.Validator{
	"operatorhubv2":         validation.OperatorHubV2Validator,
	"capabilities":          validation.StandardCapabilitiesValidator,
	"categories":            validation.StandardCategoriesValidator,
	"operatorhub":           validation.OperatorHubValidator,
	"community":             validation.CommunityOperatorValidator,
	"alpha-deprecated-apis": validation.AlphaDeprecatedAPIsValidator,
	"good-practices":        validation.GoodPracticesValidator,
	"multiarch":             validation.MultipleArchitecturesValidator,
	"bundle-objects":        validation.ObjectValidator,
}

func init() {
	logrus.SetOutput(io.Discard)
	about("bundle", askBundle)
}

func askBundle(question bundleQuestion) (any, error) {
	dir, err := os.MkdirTemp("", "oracle-bundle-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	// A check prints what it cannot convert; our answers go through the file that was there at the start.
	os.Stdout, _ = os.Open(os.DevNull)
	defer os.Stdout.Close()
	root := filepath.Join(dir, "bundle")
	for path, data := range question.Files {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(full, data, 0o644); err != nil {
			return nil, err
		}
	}
	logger := logrus.NewEntry(&logrus.Logger{Out: io.Discard, Formatter: &logrus.TextFormatter{}})
	judge := registrybundle.NewImageValidator(nil, logger)
	answer := bundleAnswer{}
	answer.Format = formErrors(func() error { return judge.ValidateBundleFormat(root) })
	answer.Content = formErrors(func() error { return judge.ValidateBundleContent(filepath.Join(root, "manifests")) })
	answer.Rendered = rendered(root)
	var bundle *manifests.Bundle
	answer.Load = formErrors(func() (err error) { bundle, err = loadBundle(root); return err })
	if bundle == nil || len(answer.Load) > 0 {
		return answer, nil
	}
	answer.Verdicts = append(answer.Verdicts, requiredVerdicts(bundle, filepath.Join(root, "manifests"))...)
	if err := prepareTools(dir, question); err != nil {
		return nil, err
	}
	for _, name := range question.Optional {
		objects := append(bundle.ObjectsToValidate(), optionsOf(dir, question))
		answer.Verdicts = append(answer.Verdicts, verdicts(name, optionalBundleChecks[name], objects...)...)
	}
	return answer, nil
}

// loadBundle reads the manifests directory as operator-sdk does, and adds what operator-sdk means to read from
// the metadata directory but does not.
func loadBundle(root string) (*manifests.Bundle, error) {
	bundle, err := manifests.GetBundleFromDir(filepath.Join(root, "manifests"))
	if err != nil {
		return nil, err
	}
	if whole, err := manifests.GetBundleFromDir(root); err == nil && whole != nil {
		bundle.Package, bundle.Channels, bundle.DefaultChannel = whole.Package, whole.Channels, whole.DefaultChannel
	}
	return bundle, nil
}

func requiredVerdicts(bundle *manifests.Bundle, directory string) []bundleVerdict {
	found := objectVerdicts(bundle, directory)
	found = append(found, verdicts("bundle", validation.BundleValidator, bundle)...)
	found = append(found, verdicts("csv", validation.ClusterServiceVersionValidator, bundle.CSV)...)
	for _, crd := range bundle.V1CRDs {
		found = append(found, verdicts("crd", validation.CustomResourceDefinitionValidator, crd)...)
	}
	for _, crd := range bundle.V1beta1CRDs {
		found = append(found, verdicts("crd", validation.CustomResourceDefinitionValidator, crd)...)
	}
	return found
}

// objectVerdicts does what operator-sdk does to objects other than the CSV and the CRDs.
func objectVerdicts(bundle *manifests.Bundle, directory string) (found []bundleVerdict) {
	mediaType, _ := registrybundle.GetMediaType(directory)
	if mediaType == registrybundle.HelmType {
		return nil
	}
	anyName := func(string, bool) []string { return nil }
	for _, object := range bundle.Objects {
		kind := object.GroupVersionKind().Kind
		if kind == "ClusterServiceVersion" || kind == "CustomResourceDefinition" {
			continue
		}
		if supported, _ := registrybundle.IsSupported(kind); mediaType == registrybundle.RegistryV1Type && !supported {
			found = append(found, bundleVerdict{"object", "Error", "unsupported kind " + kind})
			continue
		}
		for _, problem := range apivalidation.ValidateObjectMetaAccessor(object, false, anyName, field.NewPath("metadata")) {
			found = append(found, bundleVerdict{"object", "Error", problem.Error()})
		}
	}
	return found
}

func verdicts(check string, validator interfaces.Validator, objects ...any) (found []bundleVerdict) {
	defer func() {
		if problem := recover(); problem != nil {
			found = append(found, bundleVerdict{check, "Panic", fmt.Sprint(problem)})
		}
	}()
	if validator == nil {
		return []bundleVerdict{{check, "Error", "oracle: unknown check"}}
	}
	for _, result := range validator.Validate(objects...) {
		for _, problem := range append(append([]errors.Error{}, result.Errors...), result.Warnings...) {
			found = append(found, bundleVerdict{check, string(problem.Level), problem.Error()})
		}
	}
	return found
}

func formErrors(ask func() error) (messages []string) {
	defer func() {
		if problem := recover(); problem != nil {
			messages = append(messages, fmt.Sprintf("panic: %v", problem))
		}
	}()
	switch problem := ask().(type) {
	case nil:
	case registrybundle.ValidationError:
		for _, each := range problem.Errors {
			messages = append(messages, each.Error())
		}
	case utilerrors.Aggregate:
		for _, each := range utilerrors.Flatten(problem).Errors() {
			messages = append(messages, each.Error())
		}
	default:
		messages = append(messages, problem.Error())
	}
	return messages
}

func rendered(root string) (out renderedBundle) {
	defer func() {
		if problem := recover(); problem != nil {
			out = renderedBundle{Error: fmt.Sprintf("panic: %v", problem)}
		}
	}()
	input, err := registry.NewImageInput(image.SimpleReference(""), root)
	if err != nil {
		return renderedBundle{Error: err.Error()}
	}
	bundle := input.Bundle
	out = renderedBundle{Name: bundle.Name, Package: bundle.Package, Channels: bundle.Channels}
	out.Default = bundle.Annotations.DefaultChannelName
	for _, object := range bundle.Objects {
		if raw, err := object.MarshalJSON(); err == nil {
			out.Objects = append(out.Objects, raw)
		}
	}
	for _, dependency := range bundle.Dependencies {
		raw, _ := json.Marshal(dependency)
		out.Dependencies = append(out.Dependencies, raw)
	}
	return out
}

// prepareTools puts a stand-in for docker on the path, which knows the images that the question knows.
func prepareTools(dir string, question bundleQuestion) error {
	os.Unsetenv("OPERATOR_BUNDLE_CATEGORIES")
	if question.Categories != "" {
		path := filepath.Join(dir, "categories.json")
		if err := os.WriteFile(path, []byte(question.Categories), 0o644); err != nil {
			return err
		}
		os.Setenv("OPERATOR_BUNDLE_CATEGORIES", path)
	}
	if question.Index != "" {
		if err := os.WriteFile(filepath.Join(dir, "index.Dockerfile"), []byte(question.Index), 0o644); err != nil {
			return err
		}
	}
	if question.Platforms == nil {
		return nil
	}
	var script strings.Builder
	script.WriteString("#!/bin/sh\n[ \"$1\" = pull ] && image=$2 || image=$3\ncase \"$image\" in\n")
	number := 0
	for name, platforms := range question.Platforms {
		listed := []map[string]any{}
		for _, platform := range platforms {
			listed = append(listed, map[string]any{"platform": platform})
		}
		raw, _ := json.Marshal(map[string]any{"manifests": listed})
		path := filepath.Join(dir, fmt.Sprintf("image-%d.json", number))
		number++
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&script, "'%s') [ \"$1\" = pull ] || exec cat '%s' ;;\n", name, path)
	}
	script.WriteString("*) exit 1 ;;\nesac\n")
	tools := filepath.Join(dir, "tools")
	if err := os.MkdirAll(tools, 0o755); err != nil {
		return err
	}
	os.Setenv("PATH", tools+":/usr/bin:/bin")
	return os.WriteFile(filepath.Join(tools, "docker"), []byte(script.String()), 0o755)
}

func optionsOf(dir string, question bundleQuestion) map[string]string {
	options := map[string]string{}
	for key, value := range question.Options {
		options[key] = value
	}
	if question.Index != "" {
		options["index-path"] = filepath.Join(dir, "index.Dockerfile")
	}
	return options
}
