package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

var electionChecks = []check{
	{"leadership on a Lease passes from one candidate to the next", passLeadership},
	{"an event recorder counts a repeated event in one object", recordEvents},
}

// candidate runs for the lease until its context ends, then lets go of it.
func candidate(ctx context.Context, lab *lab, identity string, leading chan<- string) (stopped <-chan struct{}, err error) {
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, lab.namespace, "leader",
		lab.typed.CoreV1(), lab.typed.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return nil, err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true,
		LeaseDuration: 5 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 200 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { leading <- identity },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() { defer close(done); elector.Run(ctx) }()
	return done, nil
}

func passLeadership(ctx context.Context, lab *lab) (string, error) {
	leading := make(chan string, 2)
	first, resign := context.WithCancel(ctx)
	defer resign()
	resigned, err := candidate(first, lab, "first", leading)
	if err != nil {
		return "", err
	}
	if err := await(ctx, leading, "first"); err != nil {
		return "", err
	}
	if _, err := candidate(ctx, lab, "second", leading); err != nil {
		return "", err
	}
	resign()
	<-resigned
	if err := await(ctx, leading, "second"); err != nil {
		return "", err
	}
	lease, err := lab.typed.CoordinationV1().Leases(lab.namespace).Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if *lease.Spec.HolderIdentity != "second" || *lease.Spec.LeaseTransitions == 0 {
		return "", fmt.Errorf("held by %q after %d transitions", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions)
	}
	return fmt.Sprintf("%d transitions", *lease.Spec.LeaseTransitions), nil
}

func await(ctx context.Context, leading <-chan string, want string) error {
	select {
	case leader := <-leading:
		if leader != want {
			return fmt.Errorf("%s leads, want %s", leader, want)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s never became the leader", want)
	}
}

func recordEvents(ctx context.Context, lab *lab) (string, error) {
	client := lab.typed.CoreV1().ConfigMaps(lab.namespace)
	about, err := client.Create(ctx, configMap("recorded", "events", nil), metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: lab.typed.CoreV1().Events(lab.namespace)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "podium-informer"})
	for range 3 {
		recorder.Event(about, corev1.EventTypeNormal, "Checked", "the same event three times")
	}
	selector := "involvedObject.uid=" + string(about.UID)
	return "one event, count 3", eventually(ctx, func() (bool, string) {
		events, err := lab.typed.CoreV1().Events(lab.namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return false, err.Error()
		}
		if len(events.Items) != 1 {
			return false, fmt.Sprintf("%d events", len(events.Items))
		}
		return events.Items[0].Count == 3, fmt.Sprintf("count is %d", events.Items[0].Count)
	})
}
