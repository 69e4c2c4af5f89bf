package secrets

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/validation"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// maxNamed bounds how many Secrets of one namespace are followed.
const maxNamed = 10_000

// references are which Secrets the objects name that were listed and watched.
type references struct {
	log *slog.Logger

	mu sync.Mutex
	// by lists the Secrets that each object names, of those that are followed.
	by map[event.Key][]string
	// names are those of Secrets, by namespace: of each that is followed.
	names map[string]*names
	// listing are the objects that a list under way has brought.
	listing map[event.GroupResource]map[event.Key]bool
	// unlisted are the kinds that were not listed yet; listed is closed when there are none.
	unlisted map[event.GroupResource]bool
	listed   chan struct{}
}

// names are those of Secrets in one namespace.
type names struct {
	// count is by how many objects each is named.
	count map[string]int
	// turned are those that nobody named before, or nobody names any more; wake holds something while there are any.
	turned map[string]bool
	wake   chan struct{}
	// full says that people were told that there are too many.
	full bool
}

func newReferences(followed []kinds.Kind, log *slog.Logger) *references {
	r := &references{
		log: log, by: map[event.Key][]string{}, names: map[string]*names{}, listing: map[event.GroupResource]map[event.Key]bool{},
		unlisted: map[event.GroupResource]bool{}, listed: make(chan struct{}),
	}
	for _, kind := range followed {
		switch {
		case kind.Named && kind.Namespace != "":
			r.names[kind.Namespace] = &names{count: map[string]int{}, turned: map[string]bool{}, wake: make(chan struct{}, 1)}
		case refers(kind):
			r.unlisted[kind.GroupResource] = true
		}
	}
	if len(r.unlisted) == 0 {
		close(r.listed)
	}
	return r
}

// refers reports whether objects of a kind name Secrets.
func refers(kind kinds.Kind) bool {
	return slices.Contains([]string{opensearchv1.GroupVersion.Group, opensearchv1.LegacyGroup}, kind.Group) &&
		slices.Contains(opensearchv1.NameSecrets(), kind.Resource)
}

// await returns once all kinds that name Secrets were listed: before that nobody knows which are named.
func (r *references) await(ctx context.Context) error {
	select {
	case <-r.listed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// list takes in a page of a list. What a whole list does not have is gone.
func (r *references) list(kind kinds.Kind, token string, page source.Page, err error) {
	if !refers(kind) || err != nil && !errors.Is(err, source.ErrNotServed) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if token == "" || r.listing[kind.GroupResource] == nil {
		r.listing[kind.GroupResource] = map[event.Key]bool{}
	}
	for _, o := range page.Objects {
		r.listing[kind.GroupResource][o.Key] = true
		r.note(kind, o)
	}
	if page.Next != "" {
		return
	}
	for key := range r.by {
		if key.GroupResource == kind.GroupResource && !r.listing[kind.GroupResource][key] {
			r.set(key, nil)
		}
	}
	delete(r.listing, kind.GroupResource)
	if delete(r.unlisted, kind.GroupResource); len(r.unlisted) == 0 {
		select {
		case <-r.listed:
		default:
			close(r.listed)
		}
	}
}

// watch takes in what a watch of a kind tells.
func (r *references) watch(kind kinds.Kind, events iter.Seq2[source.Event, error]) iter.Seq2[source.Event, error] {
	if !refers(kind) {
		return events
	}
	return func(yield func(source.Event, error) bool) {
		for e, err := range events {
			if err == nil && !e.Bookmark {
				r.mu.Lock()
				r.note(kind, e.Object)
				r.mu.Unlock()
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// note takes in which Secrets an object names; the caller holds the lock.
func (r *references) note(kind kinds.Kind, o source.Object) {
	if r.names[o.Key.Namespace] == nil {
		return
	}
	var named []string
	if !o.Deleted {
		var err error
		if named, err = opensearchv1.SecretNamesOf(kind.Resource, o.Object); err != nil {
			r.log.Debug("an object names no Secrets that can be read", "object", o.Key.String(), "error", err)
		}
	}
	r.set(o.Key, named)
}

// set makes the Secrets that an object names these; the caller holds the lock.
func (r *references) set(object event.Key, named []string) {
	in, before := r.names[object.Namespace], r.by[object]
	named = slices.DeleteFunc(slices.Clone(named), func(name string) bool {
		return len(validation.NameIsDNSSubdomain(name, false)) > 0 || in.count[name] == 0 && r.full(object.Namespace, in)
	})
	for _, name := range named {
		if in.count[name]++; in.count[name] == 1 {
			in.turn(name)
		}
	}
	for _, name := range before {
		if in.count[name]--; in.count[name] == 0 {
			delete(in.count, name)
			in.turn(name)
		}
	}
	if r.by[object] = named; len(named) == 0 {
		delete(r.by, object)
	}
}

// full reports whether no more Secrets of a namespace are followed.
func (r *references) full(namespace string, in *names) bool {
	if len(in.count) < maxNamed {
		return false
	}
	if !in.full {
		in.full = true
		r.log.Warn("objects name too many Secrets; changes of some are seen late", "namespace", namespace, "followed", maxNamed)
	}
	return true
}

// turn notes that a Secret is named now, or no longer.
func (n *names) turn(name string) {
	n.turned[name] = true
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// of reports whether a Secret is named, and whether that has turned without anybody having taken note.
func (r *references) of(namespace, name string) (named, turned bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.names[namespace]
	return in.count[name] > 0, in.turned[name]
}

// take takes note of what has turned.
func (r *references) take(namespace string) (turned []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.names[namespace]
	for name := range in.turned {
		turned = append(turned, name)
	}
	clear(in.turned)
	return turned
}

// again gives back what was taken, and could not be told.
func (r *references) again(namespace string, turned []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range turned {
		r.names[namespace].turn(name)
	}
}

// wake is readable when something has turned.
func (r *references) wake(namespace string) <-chan struct{} { return r.names[namespace].wake }
