// Command dump prints what reflection knows about the Go types of the Kubernetes API, as JSON: the kinds, and of
// each type reachable from them the fields with their JSON and protobuf names, numbers and options. The OpenAPI
// definitions add the values of enumerations, which the published documents leave out.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"

	"podium.dev/facts/kinds"

	apiextensionsopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	aggregatoropenapi "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	openapi "k8s.io/kubernetes/pkg/generated/openapi"
)

type kindDump struct {
	Group, Version, Kind, Type string
}

type fieldDump struct {
	Name          string // as in JSON; of an inlined struct, the Go name
	Type          string
	Inline        bool   `json:",omitempty"`
	OmitEmpty     bool   `json:",omitempty"`
	OmitZero      bool   `json:",omitempty"`
	Number        int    `json:",omitempty"`
	Wire          string `json:",omitempty"`
	PatchStrategy string `json:",omitempty"`
	PatchMergeKey string `json:",omitempty"`
	Enum          []any  `json:",omitempty"`
}

type typeDump struct {
	Go         string // as an error message of encoding/json calls it
	OpenAPI    string `json:",omitempty"`
	Underlying string `json:",omitempty"` // of a named type that is no struct
	Custom     bool   `json:",omitempty"` // reads and writes its JSON itself
	Fields     []fieldDump
}

type dumper struct {
	types       map[string]*typeDump
	definitions map[string]common.OpenAPIDefinition
}

func main() {
	scheme := kinds.Scheme()
	d := &dumper{types: map[string]*typeDump{}, definitions: map[string]common.OpenAPIDefinition{}}
	ref := func(path string) spec.Ref { return spec.MustCreateRef(path) }
	for _, get := range []common.GetOpenAPIDefinitions{
		openapi.GetOpenAPIDefinitions, apiextensionsopenapi.GetOpenAPIDefinitions, aggregatoropenapi.GetOpenAPIDefinitions,
	} {
		for name, definition := range get(ref) {
			d.definitions[name] = definition
		}
	}
	listed := []kindDump{}
	for _, gvk := range kinds.All(scheme) {
		t := scheme.AllKnownTypes()[gvk]
		listed = append(listed, kindDump{gvk.Group, gvk.Version, gvk.Kind, d.name(t)})
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(map[string]any{"kinds": listed, "types": d.types}); err != nil {
		panic(err)
	}
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// name writes a type down and describes it, once, if it is a named one.
func (d *dumper) name(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return "*" + d.name(t.Elem())
	case t.Name() != "" && t.PkgPath() != "":
		return d.named(t)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "bytes"
	case t.Kind() == reflect.Slice:
		return "[]" + d.name(t.Elem())
	case t.Kind() == reflect.Map:
		key := ""
		if t.Key().PkgPath() != "" {
			key = d.name(t.Key())
		}
		return "{" + key + "}" + d.name(t.Elem())
	}
	return t.Kind().String()
}

func (d *dumper) named(t reflect.Type) string {
	full := t.PkgPath() + "." + t.Name()
	if d.types[full] != nil {
		return full
	}
	dump := &typeDump{Go: t.String(), Custom: reflect.PointerTo(t).Implements(unmarshaler)}
	d.types[full] = dump
	if named, ok := reflect.Zero(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		dump.OpenAPI = named.OpenAPIModelName()
	}
	switch {
	case t.Kind() == reflect.Struct && !dump.Custom:
		dump.Fields = d.fields(t)
	case t.Kind() == reflect.Struct:
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		dump.Underlying = "bytes"
	case t.Kind() == reflect.Slice:
		dump.Underlying = "[]" + d.name(t.Elem())
	case t.Kind() == reflect.Map:
		dump.Underlying = "{" + strings.TrimPrefix(d.name(t.Key()), "string") + "}" + d.name(t.Elem())
	default:
		dump.Underlying = t.Kind().String()
	}
	return full
}

func (d *dumper) fields(t reflect.Type) []fieldDump {
	fields := []fieldDump{}
	properties := map[string]spec.Schema{}
	for _, key := range []string{t.PkgPath() + "." + t.Name(), d.types[t.PkgPath()+"."+t.Name()].OpenAPI} {
		if definition, ok := d.definitions[key]; ok {
			properties = definition.Schema.Properties
		}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		dump := fieldDump{Name: name, Type: d.name(f.Type)}
		for option := range strings.SplitSeq(options, ",") {
			dump.Inline = dump.Inline || option == "inline"
			dump.OmitEmpty = dump.OmitEmpty || option == "omitempty"
			dump.OmitZero = dump.OmitZero || option == "omitzero"
		}
		if name == "" {
			dump.Name = f.Name
			dump.Inline = f.Anonymous
		} else {
			dump.Inline = false
		}
		if tag := f.Tag.Get("protobuf"); tag != "" && tag != "-" {
			parts := strings.Split(tag, ",")
			dump.Wire = parts[0]
			dump.Number, _ = strconv.Atoi(parts[1])
		}
		dump.PatchStrategy = f.Tag.Get("patchStrategy")
		dump.PatchMergeKey = f.Tag.Get("patchMergeKey")
		dump.Enum = enum(properties[name])
		fields = append(fields, dump)
	}
	return fields
}

// enum finds the values of an enumeration on a property, on its elements or on its values.
func enum(property spec.Schema) []any {
	switch {
	case property.Items != nil && property.Items.Schema != nil:
		return property.Items.Schema.Enum
	case property.AdditionalProperties != nil && property.AdditionalProperties.Schema != nil:
		return property.AdditionalProperties.Schema.Enum
	}
	return property.Enum
}
