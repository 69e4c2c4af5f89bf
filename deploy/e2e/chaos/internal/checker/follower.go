package checker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/history"
)

const (
	// markEvery bounds the error of the recorded time of a change.
	markEvery = 100 * time.Millisecond
	// caughtUpWithin bounds the wait for the watches of a follower.
	caughtUpWithin = 30 * time.Second
)

// objectFollower records every state of the objects from which access follows. It has its own watches on the API server.
type objectFollower struct {
	objects dynamic.Interface

	mu       sync.Mutex
	timeline history.Timeline
	// marked is the start of the last mark.
	marked time.Time
	// latest holds the newest delivered revision of each object that exists.
	latest map[history.Key]uint64
}

// followAll follows all kinds until ctx ends.
func (f *objectFollower) followAll(ctx context.Context) {
	var all sync.WaitGroup
	for gvr, typ := range accessKinds() {
		all.Go(func() { f.followKind(ctx, gvr, typ) })
	}
	f.markRevisions(ctx)
	all.Wait()
}

// recordWritten records an object that the API server returned for a write. An interrupted watch may miss that state.
func (f *objectFollower) recordWritten(gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	if typ, ok := accessKinds()[gvr]; ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.recordState(typ, *o, false)
	}
}

// recordState records a state of an object. The caller holds the lock.
func (f *objectFollower) recordState(typ string, o unstructured.Unstructured, gone bool) history.Key {
	k, revision, content := historyKey(typ, o.GetNamespace()+"/"+o.GetName()), revisionOf(o.GetResourceVersion()), declaredObject(typ, o)
	if gone {
		content = nil
	}
	f.timeline.AddState(revision, k, content)
	return k
}

// revisionOf returns the revision of etcd behind a resource version.
func revisionOf(version string) uint64 {
	revision, _ := strconv.ParseUint(version, 10, 64)
	return revision
}

// followKind records every state of the objects of a kind. After an interruption it continues where the watch ended, or
// lists all objects again.
func (f *objectFollower) followKind(ctx context.Context, gvr schema.GroupVersionResource, typ string) {
	for ; ctx.Err() == nil; sleepContext(ctx, markEvery) {
		list, err := f.objects.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue // The kind does not exist yet, or the API server is away.
		}
		f.recordList(typ, list)
		for version := list.GetResourceVersion(); version != "" && ctx.Err() == nil; {
			w, err := f.objects.Resource(gvr).Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
			if err != nil {
				break
			}
			version = f.recordEvents(w, typ, version)
			w.Stop()
		}
	}
}

// recordList records a list of all objects of a kind.
func (f *objectFollower) recordList(typ string, list *unstructured.UnstructuredList) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[history.Key]bool{}
	for _, o := range list.Items {
		k := f.recordState(typ, o, false)
		found[k], f.latest[k] = true, revisionOf(o.GetResourceVersion())
	}
	for k := range f.latest {
		if k.Type == typ && !found[k] {
			f.timeline.AddState(revisionOf(list.GetResourceVersion()), k, nil)
			delete(f.latest, k)
		}
	}
}

// recordEvents records the events of a watch until it ends. It returns the last version, or an empty text if a new watch
// cannot continue there.
func (f *objectFollower) recordEvents(w apiwatch.Interface, typ, version string) string {
	for event := range w.ResultChan() {
		o, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == apiwatch.Error {
			return ""
		}
		if version = o.GetResourceVersion(); event.Type == apiwatch.Bookmark {
			continue
		}
		f.mu.Lock()
		k := f.recordState(typ, *o, event.Type == apiwatch.Deleted)
		if f.latest[k] = revisionOf(version); event.Type == apiwatch.Deleted {
			delete(f.latest, k)
		}
		f.mu.Unlock()
	}
	return version
}

// markRevisions records the newest revision again and again.
func (f *objectFollower) markRevisions(ctx context.Context) {
	namespaces := f.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for ; ctx.Err() == nil; sleepContext(ctx, markEvery) {
		start := time.Now()
		attempt, cancel := context.WithTimeout(ctx, oneRound)
		list, err := namespaces.List(attempt, metav1.ListOptions{Limit: 1})
		cancel()
		if err == nil {
			f.mu.Lock()
			f.timeline.AddMark(start, time.Now(), revisionOf(list.GetResourceVersion()))
			f.marked = start
			f.mu.Unlock()
		}
	}
}

// takeVerifier returns a verifier of the states so far, then drops the states that ended before a time.
func (f *objectFollower) takeVerifier(questions []history.AccessQuestion, forget time.Time) *history.AnswerVerifier {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.timeline.NewVerifier(questions)
	f.timeline.ForgetBefore(forget)
	return v
}

// waitCaughtUp waits until the watches have delivered all changes before a time.
func (f *objectFollower) waitCaughtUp(ctx context.Context, before time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, caughtUpWithin)
	defer cancel()
	for {
		err := f.behindErr(ctx, before)
		if err == nil || ctx.Err() != nil {
			return err
		}
		sleepContext(ctx, markEvery)
	}
}

// behindErr returns an error that names a change before a time that the watches have not delivered.
func (f *objectFollower) behindErr(ctx context.Context, before time.Time) error {
	for gvr, typ := range accessKinds() {
		list, err := f.objects.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if err := f.checkDelivered(typ, list, before); err != nil {
			return fmt.Errorf("the recorder does not follow %s: %w", gvr.Resource, err)
		}
	}
	return nil
}

// checkDelivered returns an error if the watch of a kind has not delivered a list's content, or no mark began since a time.
func (f *objectFollower) checkDelivered(typ string, list *unstructured.UnstructuredList, before time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := 0
	for k := range f.latest {
		if k.Type == typ {
			known++
		}
	}
	for _, o := range list.Items {
		if k := historyKey(typ, o.GetNamespace()+"/"+o.GetName()); f.latest[k] == 0 || f.latest[k] < revisionOf(o.GetResourceVersion()) {
			return fmt.Errorf("%v at version %s is missing", k, o.GetResourceVersion())
		}
	}
	switch {
	case known > len(list.Items):
		return errors.New("a deletion is missing")
	case f.marked.Before(before):
		return errors.New("the newest revision is not known")
	}
	return nil
}
