// Informer is a small controller's worth of client-go, run against a server under test.
//
// It does what Go operators do all day: typed protobuf clients, shared informers that start by
// WatchList, dynamic and metadata informers, leader election, events. Every check prints one JSON
// line {"name", "ok", "detail", "seconds"}; the exit code is 1 if any check failed.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// lab is what every check works with: one namespace of its own and one client of each kind.
type lab struct {
	namespace  string
	typed      kubernetes.Interface
	extensions apiextensions.Interface
	dynamic    dynamic.Interface
	metadata   metadata.Interface
	wire       *wire
}

// check proves one thing; its detail is worth reading when it passed, its error when it did not.
type check struct {
	name string
	run  func(context.Context, *lab) (string, error)
}

type result struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Detail  string  `json:"detail"`
	Seconds float64 `json:"seconds"`
}

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the server under test")
	timeout := flag.Duration("timeout", 30*time.Second, "longest time one check may take")
	flag.Parse()
	klog.LogToStderr(true)

	lab, err := newLab(*kubeconfig)
	if err != nil {
		report(result{Name: "the server can be reached", Detail: err.Error()})
		os.Exit(1)
	}
	failed := false
	for _, check := range checks() {
		outcome := perform(check, lab, *timeout)
		report(outcome)
		failed = failed || !outcome.OK
	}
	lab.close()
	if failed {
		os.Exit(1)
	}
}

func checks() []check {
	var all []check
	all = append(all, typedChecks...)
	all = append(all, customChecks...)
	return append(all, electionChecks...)
}

func perform(check check, lab *lab, timeout time.Duration) (outcome result) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	start := time.Now()
	detail, err := check.run(ctx, lab)
	if err != nil {
		detail = err.Error()
	}
	return result{Name: check.name, OK: err == nil, Detail: detail, Seconds: time.Since(start).Seconds()}
}

func report(outcome result) {
	line, err := json.Marshal(outcome)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func newLab(kubeconfig string) (*lab, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// The default of 5 requests a second would measure the throttle, not the server.
	config.QPS, config.Burst = 500, 1000
	config.UserAgent = "podium-informer/1"
	wire := &wire{}
	config.Wrap(wire.wrap)

	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

	lab := &lab{wire: wire}
	if lab.typed, err = kubernetes.NewForConfig(binary); err != nil {
		return nil, err
	}
	if lab.extensions, err = apiextensions.NewForConfig(binary); err != nil {
		return nil, err
	}
	if lab.metadata, err = metadata.NewForConfig(metadata.ConfigFor(config)); err != nil {
		return nil, err
	}
	if lab.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "informer-"}}
	if namespace, err = lab.typed.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	lab.namespace = namespace.Name
	return lab, nil
}

// close removes what the checks left; a server that fails here has failed a check before.
func (lab *lab) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = lab.typed.CoreV1().Namespaces().Delete(ctx, lab.namespace, metav1.DeleteOptions{})
}

// eventually asks again until the question is answered yes; the last answer tells what was missing.
func eventually(ctx context.Context, question func() (bool, string)) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		done, state := question()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up waiting: %s", state)
		case <-tick.C:
		}
	}
}
