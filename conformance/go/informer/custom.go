package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

var customChecks = []check{
	{"a custom resource definition sent as protobuf becomes established", establish},
	{"a dynamic informer follows a custom resource through its finalizer", followCustom},
	{"a metadata informer holds names and labels only", followMetadata},
	{"a custom resource definition is deleted with its objects", removeDefinition},
}

// widgets has the namespace in its group, so that runs against one server do not meet.
func widgets(lab *lab) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: lab.namespace + ".podium.dev", Version: "v1", Resource: "widgets"}
}

func widget(lab *lab, name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": widgets(lab).GroupVersion().String(),
		"kind":       "Widget",
		"metadata":   map[string]any{"name": name, "labels": map[string]any{"size": fmt.Sprint(size)}, "finalizers": []any{"podium.dev/hold"}},
		"spec":       map[string]any{"size": size},
	}}
}

func establish(ctx context.Context, lab *lab) (string, error) {
	minimum := 1.0
	resource := widgets(lab)
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: resource.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: resource.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: resource.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"size":   {Type: "integer", Minimum: &minimum},
							"colour": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"green"`)}},
						}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"phase": {Type: "string"}}},
					},
				}},
			}},
		},
	}
	client := lab.extensions.ApiextensionsV1().CustomResourceDefinitions()
	if _, err := client.Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	return definition.Name, eventually(ctx, func() (bool, string) {
		current, err := client.Get(ctx, definition.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, condition := range current.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, ""
			}
		}
		return false, fmt.Sprint("conditions are ", current.Status.Conditions)
	})
}

func followCustom(ctx context.Context, lab *lab) (string, error) {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(lab.dynamic, 0, lab.namespace, nil)
	informer := factory.ForResource(widgets(lab))
	journal, err := watchWith(informer.Informer())
	if err != nil {
		return "", err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		return "", errors.New("the informer never got in sync")
	}
	client := lab.dynamic.Resource(widgets(lab)).Namespace(lab.namespace)
	if _, err := client.Create(ctx, widget(lab, "refused", 0), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		return "", fmt.Errorf("size 0 gave: %v", err)
	}
	object, err := client.Create(ctx, widget(lab, "one", 3), metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	if colour, _, _ := unstructured.NestedString(object.Object, "spec", "colour"); colour != "green" {
		return "", fmt.Errorf("colour is %q, want the default green", colour)
	}
	if err := unstructured.SetNestedField(object.Object, "Ready", "status", "phase"); err != nil {
		return "", err
	}
	if object, err = client.UpdateStatus(ctx, object, metav1.UpdateOptions{}); err != nil {
		return "", err
	}
	if object.GetGeneration() != 1 {
		return "", fmt.Errorf("generation is %d after a change of status, want 1", object.GetGeneration())
	}
	if err := client.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		return "", err
	}
	if err := journal.expect(ctx, "one", "added", "updated", "updated"); err != nil {
		return "", err
	}
	held, err := informer.Lister().ByNamespace(lab.namespace).Get("one")
	if err != nil || held.(*unstructured.Unstructured).GetDeletionTimestamp() == nil {
		return "", fmt.Errorf("the lister holds %v, want it with a deletionTimestamp (%v)", held, err)
	}
	release := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := client.Patch(ctx, "one", types.MergePatchType, release, metav1.PatchOptions{}); err != nil {
		return "", err
	}
	return "added updated updated deleted", journal.expect(ctx, "one", "added", "updated", "updated", "deleted")
}

func followMetadata(ctx context.Context, lab *lab) (string, error) {
	before := lab.wire.mark()
	factory := metadatainformer.NewFilteredSharedInformerFactory(lab.metadata, 0, lab.namespace, nil)
	custom, builtin := factory.ForResource(widgets(lab)), factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"})
	journal, err := watchWith(custom.Informer())
	if err != nil {
		return "", err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), custom.Informer().HasSynced, builtin.Informer().HasSynced) {
		return "", errors.New("the informers never got in sync")
	}
	client := lab.dynamic.Resource(widgets(lab)).Namespace(lab.namespace)
	if _, err := client.Create(ctx, widget(lab, "two", 4), metav1.CreateOptions{}); err != nil {
		return "", err
	}
	if err := journal.expect(ctx, "two", "added"); err != nil {
		return "", err
	}
	held, err := custom.Lister().ByNamespace(lab.namespace).Get("two")
	if err != nil {
		return "", err
	}
	partial, ok := held.(*metav1.PartialObjectMetadata)
	if !ok || partial.Labels["size"] != "4" {
		return "", fmt.Errorf("the lister holds %v", held)
	}
	for _, seen := range lab.wire.since(before, "/secrets") {
		if seen.query.Get("sendInitialEvents") == "true" {
			return strings.TrimSpace("answered as " + seen.received), nil
		}
	}
	return "", errors.New("the metadata informer did not start by WatchList")
}

// removeDefinition leaves one object behind with a finalizer, which must hold up the definition too.
func removeDefinition(ctx context.Context, lab *lab) (string, error) {
	definitions := lab.extensions.ApiextensionsV1().CustomResourceDefinitions()
	name := widgets(lab).GroupResource().String()
	if err := definitions.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return "", err
	}
	client := lab.dynamic.Resource(widgets(lab)).Namespace(lab.namespace)
	if err := eventually(ctx, func() (bool, string) {
		object, err := client.Get(ctx, "two", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return object.GetDeletionTimestamp() != nil, "the object is not being deleted"
	}); err != nil {
		return "", err
	}
	release := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := client.Patch(ctx, "two", types.MergePatchType, release, metav1.PatchOptions{}); err != nil {
		return "", err
	}
	return "after its last object", eventually(ctx, func() (bool, string) {
		_, err := definitions.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint("the definition is still there: ", err)
	})
}
