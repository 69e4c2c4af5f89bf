package reflector

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// registrationTracker holds the kinds that ProtectedResources register. It reads them from the objects that pass to the
// stream.
type registrationTracker struct {
	Source

	mu sync.Mutex
	// all holds the registrations by the names of the ProtectedResources. It is nil before the first complete list.
	// listing holds those of a list in progress.
	all, listing map[string]targetRegistration
	// changed is signalled when all may have changed.
	changed chan struct{}
}

// targetRegistration is the content of one ProtectedResource: the resource, and its name for the kind.
type targetRegistration struct {
	of   event.GroupResource
	kind string
	made time.Time
}

func newRegistrationTracker(s Source) *registrationTracker {
	return &registrationTracker{Source: s, changed: make(chan struct{}, 1)}
}

// registeredResources returns the registered resources in the order of their first ProtectedResources, and false before
// they are known.
func (g *registrationTracker) registeredResources() (of []event.GroupResource, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := map[event.GroupResource]time.Time{}
	for r := range maps.Values(g.all) {
		if made, known := first[r.of]; !known || r.made.Before(made) {
			first[r.of] = r.made
		}
	}
	return slices.SortedFunc(maps.Keys(first), func(a, b event.GroupResource) int {
		return cmp.Or(first[a].Compare(first[b]), strings.Compare(a.String(), b.String()))
	}), g.all != nil
}

// hasRegisteredKind reports whether a ProtectedResource of the resource has this name for the kind.
func (g *registrationTracker) hasRegisteredKind(of event.GroupResource, kind string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for r := range maps.Values(g.all) {
		if r.of == of && r.kind == kind {
			return true
		}
	}
	return false
}

func (g *registrationTracker) List(ctx context.Context, kind kinds.Kind, token string) (source.Page, error) {
	page, err := g.Source.List(ctx, kind, token)
	if kind.GroupResource != kinds.ProtectedResources().GroupResource {
		return page, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case errors.Is(err, source.ErrNotServed):
		g.listing, page.Next = map[string]targetRegistration{}, ""
	case err != nil:
		return page, err
	case token == "":
		g.listing = map[string]targetRegistration{}
	}
	for _, o := range page.Objects {
		updateRegistration(g.listing, o)
	}
	if page.Next == "" {
		g.all = g.listing
		g.notifyChanged()
	}
	return page, err
}

func (g *registrationTracker) Watch(ctx context.Context, kind kinds.Kind, version string) iter.Seq2[source.Event, error] {
	events := g.Source.Watch(ctx, kind, version)
	if kind.GroupResource != kinds.ProtectedResources().GroupResource {
		return events
	}
	return func(yield func(source.Event, error) bool) {
		for e, err := range events {
			if err == nil && !e.Bookmark {
				g.mu.Lock()
				updateRegistration(g.all, e.Object)
				g.notifyChanged()
				g.mu.Unlock()
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// updateRegistration adds, replaces or removes the registration of a ProtectedResource.
func updateRegistration(all map[string]targetRegistration, o source.Object) {
	var p iamv1alpha1.ProtectedResource
	if o.Deleted || event.DecodeObject(o.Change.Object, &p) != nil || p.DeletionTimestamp != nil || p.Spec.Plural == "" {
		delete(all, o.Key.Name)
		return
	}
	all[o.Key.Name] = targetRegistration{iam.TargetResource(p.Spec), p.Spec.Kind, p.CreationTimestamp.Time}
}

func (g *registrationTracker) notifyChanged() {
	select {
	case g.changed <- struct{}{}:
	default:
	}
}
