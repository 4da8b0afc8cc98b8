// Package kinds lists the Kubernetes kinds that Podium serves: every kind that a default kube-apiserver
// registers in a stable version, and the kinds of the API machinery itself.
package kinds

import (
	"sort"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Versions are the group versions that are served by default and are neither alpha nor beta.
var Versions = []schema.GroupVersion{
	{Version: "v1"},
	{Group: "admissionregistration.k8s.io", Version: "v1"},
	{Group: "apiextensions.k8s.io", Version: "v1"},
	{Group: "apiregistration.k8s.io", Version: "v1"},
	{Group: "apps", Version: "v1"},
	{Group: "authentication.k8s.io", Version: "v1"},
	{Group: "authorization.k8s.io", Version: "v1"},
	{Group: "autoscaling", Version: "v1"},
	{Group: "autoscaling", Version: "v2"},
	{Group: "batch", Version: "v1"},
	{Group: "certificates.k8s.io", Version: "v1"},
	{Group: "coordination.k8s.io", Version: "v1"},
	{Group: "discovery.k8s.io", Version: "v1"},
	{Group: "events.k8s.io", Version: "v1"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"},
	{Group: "networking.k8s.io", Version: "v1"},
	{Group: "node.k8s.io", Version: "v1"},
	{Group: "policy", Version: "v1"},
	{Group: "rbac.authorization.k8s.io", Version: "v1"},
	{Group: "resource.k8s.io", Version: "v1"},
	{Group: "scheduling.k8s.io", Version: "v1"},
	{Group: "storage.k8s.io", Version: "v1"},
}

// Meta is the group version under which the kinds of the API machinery are filed.
var Meta = schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}

// Registered in core/v1, but never the body of a request or a response of a default server.
var unserved = map[string]bool{"PodStatusResult": true, "RangeAllocation": true, "SerializedReference": true}

// Scheme knows all the kinds.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(apiregistrationv1.AddToScheme(scheme))
	scheme.AddKnownTypes(Meta,
		&metav1.Status{}, &metav1.List{}, &metav1.APIVersions{}, &metav1.APIGroup{}, &metav1.APIGroupList{},
		&metav1.APIResourceList{}, &metav1.Table{}, &metav1.PartialObjectMetadata{},
		&metav1.PartialObjectMetadataList{}, &metav1.ListOptions{}, &metav1.GetOptions{},
		&metav1.DeleteOptions{}, &metav1.CreateOptions{}, &metav1.UpdateOptions{}, &metav1.PatchOptions{},
	)
	scheme.AddKnownTypeWithName(Meta.WithKind("WatchEvent"), &metav1.WatchEvent{})
	return scheme
}

// All lists the kinds, sorted; machinery kinds stand once, under Meta.
func All(scheme *runtime.Scheme) []schema.GroupVersionKind {
	machinery := map[string]bool{}
	for kind := range scheme.KnownTypes(Meta) {
		machinery[kind] = true
	}
	found := []schema.GroupVersionKind{}
	for _, version := range append([]schema.GroupVersion{Meta}, Versions...) {
		for kind := range scheme.KnownTypes(version) {
			isOptions := strings.HasSuffix(kind, "Options")
			if version != Meta && (machinery[kind] || isOptions || unserved[kind]) {
				continue
			}
			found = append(found, version.WithKind(kind))
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].String() < found[j].String() })
	return found
}
