package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

var typedChecks = []check{
	{"the server says its version", version},
	{"a typed informer starts by WatchList and holds what exists", startByWatchList},
	{"events and lister follow create, update and delete", followWrites},
	{"a change of labels enters and leaves a selector", crossSelector},
	{"an informer resumes after its connection was cut, without a new list", resumeAfterCut},
	{"protobuf bodies create, update and delete a Deployment", protobufBodies},
	{"strategic, merge and JSON patches from the typed client", patches},
	{"server-side apply from apply configurations, with a conflict", applyConfigurations},
	{"a list in pages is complete", pagedList},
	{"errors have the types that callers test for", errorTypes},
	{"a collection is deleted by selector and the informer sees it", deleteCollection},
	{"tokens and access reviews from the typed client", reviews},
}

const (
	mark  = "podium.dev/informer"
	count = 60
)

func version(_ context.Context, lab *lab) (string, error) {
	info, err := lab.typed.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	return info.GitVersion, nil
}

func configMap(name, group string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{mark: group}},
		Data:       data,
	}
}

// configMapInformer starts an informer on the ConfigMaps of one group and waits until it is in sync.
func configMapInformer(ctx context.Context, lab *lab, group string) (listers.ConfigMapNamespaceLister, *journal, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(lab.typed, 0,
		informers.WithNamespace(lab.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = mark + "=" + group }))
	informer := factory.Core().V1().ConfigMaps()
	journal, err := watchWith(informer.Informer())
	if err != nil {
		return nil, nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		return nil, nil, errors.New("the informer never got in sync")
	}
	return informer.Lister().ConfigMaps(lab.namespace), journal, nil
}

func startByWatchList(ctx context.Context, lab *lab) (string, error) {
	for i := range count {
		object := configMap(fmt.Sprintf("start-%02d", i), "start", map[string]string{"i": fmt.Sprint(i)})
		if _, err := lab.typed.CoreV1().ConfigMaps(lab.namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return "", err
		}
	}
	before := lab.wire.mark()
	lister, journal, err := configMapInformer(ctx, lab, "start")
	if err != nil {
		return "", err
	}
	held, err := lister.List(labels.Everything())
	if err != nil || len(held) != count {
		return "", fmt.Errorf("the lister holds %d objects, want %d (%v)", len(held), count, err)
	}
	if err := journal.expect(ctx, "start-17", "added"); err != nil {
		return "", err
	}
	for _, seen := range lab.wire.since(before, "/configmaps") {
		if seen.method == http.MethodGet && !seen.watches() {
			return "", errors.New("the client fell back to a plain list")
		}
		if seen.query.Get("sendInitialEvents") == "true" && seen.status == http.StatusOK {
			return fmt.Sprintf("%d objects, answered as %s", count, seen.received), nil
		}
	}
	return "", errors.New("no watch with sendInitialEvents=true was answered with 200")
}

func followWrites(ctx context.Context, lab *lab) (string, error) {
	lister, journal, err := configMapInformer(ctx, lab, "follow")
	if err != nil {
		return "", err
	}
	client := lab.typed.CoreV1().ConfigMaps(lab.namespace)
	created, err := client.Create(ctx, configMap("follow", "follow", map[string]string{"a": "1"}), metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	if err := journal.expect(ctx, "follow", "added"); err != nil {
		return "", err
	}
	held, err := lister.Get("follow")
	if err != nil || held.UID != created.UID || held.ResourceVersion != created.ResourceVersion || held.Data["a"] != "1" {
		return "", fmt.Errorf("the lister holds %v, the server answered %v (%v)", held, created, err)
	}
	created.Data["a"] = "2"
	updated, err := client.Update(ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return "", err
	}
	if err := journal.expect(ctx, "follow", "added", "updated"); err != nil {
		return "", err
	}
	if held, err = lister.Get("follow"); err != nil || held.ResourceVersion != updated.ResourceVersion || held.Data["a"] != "2" {
		return "", fmt.Errorf("the lister holds %v, the server answered %v (%v)", held, updated, err)
	}
	if err := client.Delete(ctx, "follow", metav1.DeleteOptions{}); err != nil {
		return "", err
	}
	if err := journal.expect(ctx, "follow", "added", "updated", "deleted"); err != nil {
		return "", err
	}
	if _, err := lister.Get("follow"); !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("the lister still answers: %v", err)
	}
	return "added updated deleted", nil
}

func crossSelector(ctx context.Context, lab *lab) (string, error) {
	_, journal, err := configMapInformer(ctx, lab, "cross")
	if err != nil {
		return "", err
	}
	client := lab.typed.CoreV1().ConfigMaps(lab.namespace)
	object, err := client.Create(ctx, configMap("cross", "elsewhere", nil), metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	for _, group := range []string{"cross", "elsewhere", "cross"} {
		object.Labels[mark] = group
		if object, err = client.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
			return "", err
		}
	}
	return "in, out, in", journal.expect(ctx, "cross", "added", "deleted", "added")
}

func resumeAfterCut(ctx context.Context, lab *lab) (string, error) {
	lister, journal, err := configMapInformer(ctx, lab, "cut")
	if err != nil {
		return "", err
	}
	client := lab.typed.CoreV1().ConfigMaps(lab.namespace)
	if _, err := client.Create(ctx, configMap("before", "cut", nil), metav1.CreateOptions{}); err != nil {
		return "", err
	}
	if err := journal.expect(ctx, "before", "added"); err != nil {
		return "", err
	}
	cutAt := lab.wire.mark()
	cut := lab.wire.sever()
	if _, err := client.Create(ctx, configMap("during", "cut", nil), metav1.CreateOptions{}); err != nil {
		return "", err
	}
	if err := client.Delete(ctx, "before", metav1.DeleteOptions{}); err != nil {
		return "", err
	}
	if err := errors.Join(journal.expect(ctx, "during", "added"), journal.expect(ctx, "before", "added", "deleted")); err != nil {
		return "", err
	}
	if held, _ := lister.List(labels.Everything()); len(held) != 1 {
		return "", fmt.Errorf("the lister holds %d objects, want 1", len(held))
	}
	for _, seen := range lab.wire.since(cutAt, "/configmaps") {
		if seen.method == http.MethodGet && seen.query.Get("labelSelector") == mark+"=cut" &&
			(!seen.watches() || seen.query.Get("sendInitialEvents") != "") {
			return "", errors.New("the client listed again instead of resuming")
		}
	}
	return fmt.Sprintf("watches cut: %d", cut), nil
}

func deployment(name string) *appsv1.Deployment {
	match := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](0),
			Selector: &metav1.LabelSelector{MatchLabels: match},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromString("30%"))}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: match},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name:  "main",
						Image: "registry.example/app:1",
						Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
						Env:   []corev1.EnvVar{{Name: "A", Value: "1"}},
						Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("1.5Gi")},
						},
						ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
							HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("http")}}},
					}},
					Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				},
			},
		},
	}
}

func protobufBodies(ctx context.Context, lab *lab) (string, error) {
	client := lab.typed.AppsV1().Deployments(lab.namespace)
	before := lab.wire.mark()
	object, err := client.Create(ctx, deployment("proto"), metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	container := object.Spec.Template.Spec.Containers[0]
	memory := container.Resources.Requests[corev1.ResourceMemory]
	switch {
	case memory.String() != "1536Mi":
		return "", fmt.Errorf("memory reads %s, want 1536Mi", memory.String())
	case object.Spec.Strategy.RollingUpdate.MaxSurge.String() != "30%" || object.Spec.Strategy.RollingUpdate.MaxUnavailable.String() != "25%":
		return "", fmt.Errorf("the strategy reads %v", object.Spec.Strategy.RollingUpdate)
	case container.ReadinessProbe.HTTPGet.Port.String() != "http" || container.ReadinessProbe.HTTPGet.Scheme != corev1.URISchemeHTTP:
		return "", fmt.Errorf("the probe reads %v", container.ReadinessProbe)
	case *object.Spec.Replicas != 0 || object.Generation != 1:
		return "", fmt.Errorf("replicas %d at generation %d, want 0 at 1", *object.Spec.Replicas, object.Generation)
	}
	// Whole-object updates race with the deployment controller on a real cluster: retry as controllers do.
	if err := retryOnConflict(func() error {
		if object, err = client.Get(ctx, "proto", metav1.GetOptions{}); err != nil {
			return err
		}
		object.Spec.Paused = true
		object, err = client.Update(ctx, object, metav1.UpdateOptions{})
		return err
	}); err != nil {
		return "", err
	}
	if object.Generation != 2 {
		return "", fmt.Errorf("generation is %d after a change of spec, want 2", object.Generation)
	}
	wrong := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("00000000-0000-0000-0000-000000000000")}
	if err := client.Delete(ctx, "proto", wrong); !apierrors.IsConflict(err) {
		return "", fmt.Errorf("deleting with the wrong uid gave: %v", err)
	}
	right := metav1.DeleteOptions{
		Preconditions:     metav1.NewUIDPreconditions(string(object.UID)),
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	}
	if err := client.Delete(ctx, "proto", right); err != nil {
		return "", err
	}
	if err := eventually(ctx, func() (bool, string) {
		_, err := client.Get(ctx, "proto", metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint("the Deployment is still there: ", err)
	}); err != nil {
		return "", err
	}
	answered := map[string]bool{}
	for _, seen := range append(lab.wire.since(before, "/deployments"), lab.wire.since(before, "/proto")...) {
		if seen.method != http.MethodGet && seen.sent != runtime.ContentTypeProtobuf {
			return "", fmt.Errorf("%s went out as %q", seen.method, seen.sent)
		}
		answered[seen.received] = true
	}
	return fmt.Sprintf("sent as protobuf, answered as %v", keys(answered)), nil
}

func retryOnConflict(attempt func() error) error {
	for {
		if err := attempt(); !apierrors.IsConflict(err) {
			return err
		}
	}
}

func keys(set map[string]bool) string {
	var names []string
	for name := range set {
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

func patches(ctx context.Context, lab *lab) (string, error) {
	deployments := lab.typed.AppsV1().Deployments(lab.namespace)
	if _, err := deployments.Create(ctx, deployment("patched"), metav1.CreateOptions{}); err != nil {
		return "", err
	}
	sidecar := `{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"registry.example/side:1"}]}}}}`
	object, err := deployments.Patch(ctx, "patched", types.StrategicMergePatchType, []byte(sidecar), metav1.PatchOptions{})
	if err != nil {
		return "", err
	}
	if names := len(object.Spec.Template.Spec.Containers); names != 2 {
		return "", fmt.Errorf("%d containers after a strategic merge, want 2", names)
	}
	maps := lab.typed.CoreV1().ConfigMaps(lab.namespace)
	if _, err := maps.Create(ctx, configMap("patched", "patch", map[string]string{"a": "1", "b": "2"}), metav1.CreateOptions{}); err != nil {
		return "", err
	}
	if _, err := maps.Patch(ctx, "patched", types.MergePatchType, []byte(`{"data":{"a":null,"c":"3"}}`), metav1.PatchOptions{}); err != nil {
		return "", err
	}
	operations := `[{"op":"test","path":"/data/b","value":"2"},{"op":"move","from":"/data/b","path":"/data/d"}]`
	patched, err := maps.Patch(ctx, "patched", types.JSONPatchType, []byte(operations), metav1.PatchOptions{})
	if err != nil {
		return "", err
	}
	if got := fmt.Sprint(patched.Data); got != "map[c:3 d:2]" {
		return "", fmt.Errorf("data reads %s, want map[c:3 d:2]", got)
	}
	return "", deployments.Delete(ctx, "patched", metav1.DeleteOptions{})
}

func applyConfigurations(ctx context.Context, lab *lab) (string, error) {
	client := lab.typed.CoreV1().ConfigMaps(lab.namespace)
	want := func(value string) *applycorev1.ConfigMapApplyConfiguration {
		return applycorev1.ConfigMap("applied", lab.namespace).WithData(map[string]string{"key": value})
	}
	if _, err := client.Apply(ctx, want("one"), metav1.ApplyOptions{FieldManager: "first"}); err != nil {
		return "", err
	}
	_, err := client.Apply(ctx, want("two"), metav1.ApplyOptions{FieldManager: "second"})
	if !apierrors.IsConflict(err) {
		return "", fmt.Errorf("a second manager's other value gave: %v", err)
	}
	conflict := err.Error()
	object, err := client.Apply(ctx, want("two"), metav1.ApplyOptions{FieldManager: "second", Force: true})
	if err != nil {
		return "", err
	}
	if object.Data["key"] != "two" || len(object.ManagedFields) != 1 || object.ManagedFields[0].Manager != "second" {
		return "", fmt.Errorf("after force: data %v, managers %v", object.Data, object.ManagedFields)
	}
	extracted, err := applycorev1.ExtractConfigMap(object, "second")
	if err != nil || extracted.Data["key"] != "two" {
		return "", fmt.Errorf("extracting what the manager owns gave %v (%v)", extracted, err)
	}
	return conflict, nil
}

func pagedList(ctx context.Context, lab *lab) (string, error) {
	options := metav1.ListOptions{LabelSelector: mark + "=start", Limit: 25}
	seen, sizes := map[string]bool{}, []int{}
	for {
		page, err := lab.typed.CoreV1().ConfigMaps(lab.namespace).List(ctx, options)
		if err != nil {
			return "", err
		}
		for _, item := range page.Items {
			seen[item.Name] = true
		}
		sizes = append(sizes, len(page.Items))
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	if len(seen) != count || fmt.Sprint(sizes) != "[25 25 10]" {
		return "", fmt.Errorf("%d distinct objects in pages of %v, want %d in [25 25 10]", len(seen), sizes, count)
	}
	return fmt.Sprint(sizes), nil
}

func errorTypes(ctx context.Context, lab *lab) (string, error) {
	client := lab.typed.CoreV1().ConfigMaps(lab.namespace)
	created, err := client.Create(ctx, configMap("errors", "errors", nil), metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	if _, err := client.Update(ctx, created.DeepCopy(), metav1.UpdateOptions{}); err != nil {
		return "", err
	}
	stale := created.DeepCopy()
	stale.ResourceVersion = "1"
	_, missing := client.Get(ctx, "no-such-object", metav1.GetOptions{})
	_, again := client.Create(ctx, configMap("errors", "errors", nil), metav1.CreateOptions{})
	_, conflict := client.Update(ctx, stale, metav1.UpdateOptions{})
	_, invalid := client.Create(ctx, configMap("Not A Name", "errors", nil), metav1.CreateOptions{})
	_, expired := client.Watch(ctx, metav1.ListOptions{ResourceVersion: "nonsense"})
	for want, got := range map[string]bool{
		"NotFound":                  apierrors.IsNotFound(missing),
		"AlreadyExists":             apierrors.IsAlreadyExists(again),
		"Conflict":                  apierrors.IsConflict(conflict),
		"Invalid":                   apierrors.IsInvalid(invalid),
		"a refused resourceVersion": expired != nil,
	} {
		if !got {
			return "", fmt.Errorf("no %s among: %v; %v; %v; %v; %v", want, missing, again, conflict, invalid, expired)
		}
	}
	return "NotFound AlreadyExists Conflict Invalid", nil
}

func deleteCollection(ctx context.Context, lab *lab) (string, error) {
	lister, _, err := configMapInformer(ctx, lab, "start")
	if err != nil {
		return "", err
	}
	options := metav1.ListOptions{LabelSelector: mark + "=start"}
	if err := lab.typed.CoreV1().ConfigMaps(lab.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, options); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d deleted", count), eventually(ctx, func() (bool, string) {
		held, _ := lister.List(labels.Everything())
		return len(held) == 0, fmt.Sprintf("the lister still holds %d objects", len(held))
	})
}

func reviews(ctx context.Context, lab *lab) (string, error) {
	accounts := lab.typed.CoreV1().ServiceAccounts(lab.namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reviewed"}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)}}
	token, err := accounts.CreateToken(ctx, "reviewed", request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}
	if review, err = lab.typed.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	if want := "system:serviceaccount:" + lab.namespace + ":reviewed"; !review.Status.Authenticated || review.Status.User.Username != want {
		return "", fmt.Errorf("the token reads %v, want %s", review.Status, want)
	}
	access := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               review.Status.User.Username,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "delete", Resource: "secrets", Namespace: lab.namespace},
	}}
	if access, err = lab.typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, access, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	if access.Status.Allowed {
		return "", errors.New("a service account without roles may delete Secrets")
	}
	return review.Status.User.Username, nil
}
