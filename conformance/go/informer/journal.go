package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// journal writes down what an informer told its handler, per object name, in order.
type journal struct {
	mu      sync.Mutex
	entries map[string][]string
}

func watchWith(informer cache.SharedIndexInformer) (*journal, error) {
	j := &journal{entries: map[string][]string{}}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, _ bool) { j.write("added", object) },
		UpdateFunc: func(_, object any) { j.write("updated", object) },
		DeleteFunc: func(object any) { j.write("deleted", object) },
	})
	return j, err
}

func (j *journal) write(event string, object any) {
	if lost, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object, event = lost.Obj, "deleted unseen"
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries[accessor.GetName()] = append(j.entries[accessor.GetName()], event)
}

func (j *journal) of(name string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries[name])
}

// expect waits until exactly these events were told about the object.
func (j *journal) expect(ctx context.Context, name string, events ...string) error {
	err := eventually(ctx, func() (bool, string) {
		seen := j.of(name)
		return len(seen) >= len(events), fmt.Sprintf("events of %s are [%s]", name, strings.Join(seen, " "))
	})
	if err != nil {
		return fmt.Errorf("%w, want [%s]", err, strings.Join(events, " "))
	}
	if seen := j.of(name); !slices.Equal(seen, events) {
		return fmt.Errorf("events of %s are [%s], want [%s]", name, strings.Join(seen, " "), strings.Join(events, " "))
	}
	return nil
}
