// Command samples prints objects of every kind, one JSON document per line: the protobuf that a Go client would
// send, in hexadecimal, and the JSON that the API server makes of it. With `coerce`, `quantities` or `times` it reads JSON
// from standard input instead and answers with what Go decodes each to, or the error.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"time"

	"podium.dev/facts/kinds"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
)

func main() {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if len(os.Args) > 1 {
		answer(os.Args[1], encoder)
		return
	}
	scheme := kinds.Scheme()
	serializer := protobuf.NewSerializer(scheme, scheme)
	for _, gvk := range kinds.All(scheme) {
		if gvk.Kind == "Table" || gvk.Kind == "WatchEvent" { // never in a protobuf envelope
			continue
		}
		for _, how := range []filling{{name: "zero"}, {name: "hollow", hollow: true}, {name: "full", full: true}} {
			object := reflect.New(scheme.AllKnownTypes()[gvk])
			how.fill(object.Elem(), 0)
			if how.name == "zero" {
				object.Elem().SetZero()
			}
			must(encoder.Encode(sample(serializer, gvk, how.name, object.Interface().(runtime.Object))))
		}
	}
}

type line struct {
	APIVersion, Kind, Filling, Protobuf string
	JSON                                json.RawMessage
}

// sample encodes, decodes as the server would, and shows what the server then holds.
func sample(serializer runtime.Serializer, gvk schema.GroupVersionKind, filling string, object runtime.Object) line {
	object.GetObjectKind().SetGroupVersionKind(gvk)
	buffer := &bytes.Buffer{}
	must(serializer.Encode(object, buffer))
	sent := buffer.Bytes()
	received := reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object)
	_, _, err := serializer.Decode(sent, nil, received)
	must(err)
	received.GetObjectKind().SetGroupVersionKind(gvk)
	text, err := json.Marshal(received)
	must(err)
	return line{gvk.GroupVersion().String(), gvk.Kind, filling, hex.EncodeToString(sent), text}
}

// A filling sets every field of an object: full with telling values, hollow with pointers and elements that hold
// nothing.
type filling struct {
	name         string
	full, hollow bool
	count        int
}

const deepest = 12

func (f *filling) fill(v reflect.Value, depth int) {
	if f.custom(v, depth) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if depth < deepest {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Type != reflect.TypeFor[metav1.TypeMeta]() {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		f.fillSlice(v, depth)
	case reflect.Map:
		if depth >= deepest {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for i := range f.elements() {
			key := reflect.New(v.Type().Key()).Elem()
			key.SetString(fmt.Sprintf("key-%d", i))
			value := reflect.New(v.Type().Elem()).Elem()
			f.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	default:
		if f.full {
			f.fillScalar(v)
		}
	}
}

func (f *filling) elements() int {
	if f.full {
		return 2
	}
	return 1
}

func (f *filling) fillSlice(v reflect.Value, depth int) {
	if depth >= deepest {
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if f.full {
			v.SetBytes([]byte{0, 1, 254, 255})
		}
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), f.elements(), f.elements()))
	for i := range v.Len() {
		f.fill(v.Index(i), depth+1)
	}
}

func (f *filling) fillScalar(v reflect.Value) {
	f.count++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text ü %d", f.count))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64, reflect.Int:
		number := int64(f.count)
		if f.count%2 == 0 {
			number = -number
		}
		v.SetInt(number)
	case reflect.Float64:
		v.SetFloat(float64(f.count) + 0.5)
	default:
		panic("nothing to fill a " + v.Kind().String() + " with")
	}
}

// custom fills the types whose fields are not what their JSON shows.
func (f *filling) custom(v reflect.Value, depth int) bool {
	f.count++
	schemaProps := func() *apiextensionsv1.JSONSchemaProps {
		props := &apiextensionsv1.JSONSchemaProps{}
		f.fill(reflect.ValueOf(props).Elem(), max(depth+1, deepest-2))
		return props
	}
	switch target := v.Addr().Interface().(type) {
	case *metav1.Time:
		if f.full {
			target.Time = time.Unix(1_700_000_000+int64(f.count), 5)
		}
	case *metav1.MicroTime:
		if f.full {
			target.Time = time.Unix(1_700_000_000, int64(f.count)*1_000_123)
		}
	case *resource.Quantity:
		if f.full {
			*target = resource.MustParse(fmt.Sprintf("%d.5Mi", f.count))
		}
	case *intstr.IntOrString:
		if f.full && f.count%2 == 0 {
			*target = intstr.FromString("50%")
		} else if f.full {
			*target = intstr.FromInt32(int32(f.count))
		}
	case *runtime.RawExtension:
		if f.full {
			target.Raw = []byte(`{"kind":"Anything","n":[1,2.5,null]}`)
		}
	case *metav1.FieldsV1:
		if f.full {
			target.SetRawBytes([]byte(`{"f:spec":{"f:replicas":{}}}`))
		}
	case *apiextensionsv1.JSON:
		if f.full {
			target.Raw = []byte(`{"default":[true,"x"]}`)
		}
	case *apiextensionsv1.JSONSchemaPropsOrBool:
		target.Allows = f.full
		if f.full && f.count%2 == 0 && depth < deepest {
			target.Schema = schemaProps()
		}
	case *apiextensionsv1.JSONSchemaPropsOrArray:
		if f.full && depth < deepest && f.count%2 == 0 {
			target.JSONSchemas = []apiextensionsv1.JSONSchemaProps{*schemaProps(), {}}
		} else if depth < deepest {
			target.Schema = schemaProps()
		}
	case *apiextensionsv1.JSONSchemaPropsOrStringArray:
		if f.full && f.count%2 == 0 {
			target.Property = []string{"a", "b"}
		} else if depth < deepest {
			target.Schema = schemaProps()
		}
	case *apiextensionsv1.JSONSchemaProps:
		if depth >= deepest-1 {
			target.Type = "string"
			return true
		}
		return false
	default:
		return false
	}
	return true
}

// answer reads one question per line: a JSON text for quantities and times, and for coerce an object.
func answer(what string, encoder *json.Encoder) {
	scheme := kinds.Scheme()
	serializer := protobuf.NewSerializer(scheme, scheme)
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 64<<20)
	for input.Scan() {
		var into any
		switch what {
		case "quantities":
			into = &resource.Quantity{}
		case "times":
			into = &metav1.Time{}
		case "microtimes":
			into = &metav1.MicroTime{}
		case "coerce":
			meta := metav1.TypeMeta{}
			must(json.Unmarshal(input.Bytes(), &meta))
			gvk := meta.GroupVersionKind()
			known := scheme.AllKnownTypes()[gvk]
			if known == nil {
				known = scheme.AllKnownTypes()[kinds.Meta.WithKind(gvk.Kind)]
			}
			into = reflect.New(known).Interface()
		}
		strict, err := kjson.UnmarshalStrict(input.Bytes(), into)
		if object, ok := into.(runtime.Object); ok && err == nil {
			into = stored(serializer, object)
		}
		reply := map[string]any{"object": into, "strict": []string{}}
		for _, each := range strict {
			reply["strict"] = append(reply["strict"].([]string), each.Error())
		}
		if err != nil {
			reply = map[string]any{"error": err.Error()}
		}
		must(encoder.Encode(reply))
	}
}

// stored is an object after it has been written to etcd and read again; two groups are stored as JSON.
func stored(serializer runtime.Serializer, object runtime.Object) runtime.Object {
	gvk := object.GetObjectKind().GroupVersionKind()
	if gvk.Group == "apiextensions.k8s.io" || gvk.Group == "apiregistration.k8s.io" || gvk.Kind == "Table" {
		return object
	}
	buffer := &bytes.Buffer{}
	must(serializer.Encode(object, buffer))
	received := reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object)
	_, _, err := serializer.Decode(buffer.Bytes(), nil, received)
	must(err)
	received.GetObjectKind().SetGroupVersionKind(gvk)
	return received
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
