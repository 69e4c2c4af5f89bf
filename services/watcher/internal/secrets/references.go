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

// maxNamed bounds the Secrets of one namespace that are followed.
const maxNamed = 10_000

// secretReferences holds the Secrets that the listed and watched objects name.
type secretReferences struct {
	log *slog.Logger

	mu sync.Mutex
	// by lists the followed Secrets that each object names.
	by map[event.Key][]string
	// names holds the named Secrets of each followed namespace.
	names map[string]*namedSecrets
	// listing holds the objects of lists that are not complete yet.
	listing map[event.GroupResource]map[event.Key]bool
	// unlisted holds the kinds that were not listed yet. listed is closed once it is empty.
	unlisted map[event.GroupResource]bool
	listed   chan struct{}
}

// namedSecrets holds the named Secrets of one namespace.
type namedSecrets struct {
	// count holds the number of objects that name each Secret.
	count map[string]int
	// A receive from wake does not block while turned is not empty.
	turned map[string]bool
	wake   chan struct{}
	// full means that the excess of Secrets was logged.
	full bool
}

func newSecretReferences(followed []kinds.Kind, log *slog.Logger) *secretReferences {
	r := &secretReferences{
		log: log, by: map[event.Key][]string{}, names: map[string]*namedSecrets{}, listing: map[event.GroupResource]map[event.Key]bool{},
		unlisted: map[event.GroupResource]bool{}, listed: make(chan struct{}),
	}
	for _, kind := range followed {
		switch {
		case kind.ReferencedOnly && kind.Namespace != "":
			r.names[kind.Namespace] = &namedSecrets{count: map[string]int{}, turned: map[string]bool{}, wake: make(chan struct{}, 1)}
		case canNameSecrets(kind):
			r.unlisted[kind.GroupResource] = true
		}
	}
	if len(r.unlisted) == 0 {
		close(r.listed)
	}
	return r
}

// canNameSecrets reports whether objects of a kind name Secrets.
func canNameSecrets(kind kinds.Kind) bool {
	return slices.Contains([]string{opensearchv1.GroupVersion.Group, opensearchv1.LegacyGroup}, kind.Group) &&
		slices.Contains(opensearchv1.ResourcesWithSecrets(), kind.Resource)
}

// waitUntilListed returns once all kinds that name Secrets were listed. Before that the named Secrets are unknown.
func (r *secretReferences) waitUntilListed(ctx context.Context) error {
	select {
	case <-r.listed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// recordListPage records a page of a list. Objects that a complete list lacks are gone.
func (r *secretReferences) recordListPage(kind kinds.Kind, token string, page source.Page, err error) {
	if !canNameSecrets(kind) || err != nil && !errors.Is(err, source.ErrNotServed) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if token == "" || r.listing[kind.GroupResource] == nil {
		r.listing[kind.GroupResource] = map[event.Key]bool{}
	}
	for _, o := range page.Objects {
		r.listing[kind.GroupResource][o.Key] = true
		r.recordObjectReferences(kind, o)
	}
	if page.Next != "" {
		return
	}
	for key := range r.by {
		if key.GroupResource == kind.GroupResource && !r.listing[kind.GroupResource][key] {
			r.setReferences(key, nil)
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

// recordWatchEvents records the events of a watch, and passes them on.
func (r *secretReferences) recordWatchEvents(kind kinds.Kind, events iter.Seq2[source.Event, error]) iter.Seq2[source.Event, error] {
	if !canNameSecrets(kind) {
		return events
	}
	return func(yield func(source.Event, error) bool) {
		for e, err := range events {
			if err == nil && !e.Bookmark {
				r.mu.Lock()
				r.recordObjectReferences(kind, e.Object)
				r.mu.Unlock()
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// recordObjectReferences records the Secrets that an object names. The caller must hold the lock.
func (r *secretReferences) recordObjectReferences(kind kinds.Kind, o source.Object) {
	if r.names[o.Key.Namespace] == nil {
		return
	}
	var named []string
	if !o.Deleted {
		var err error
		if named, err = opensearchv1.DecodeSecretNames(kind.Resource, o.Object); err != nil {
			r.log.Debug("an object names no Secrets that can be read", "object", o.Key.String(), "error", err)
		}
	}
	r.setReferences(o.Key, named)
}

// setReferences replaces the Secrets that an object names. The caller must hold the lock.
func (r *secretReferences) setReferences(object event.Key, named []string) {
	in, before := r.names[object.Namespace], r.by[object]
	named = slices.DeleteFunc(slices.Clone(named), func(name string) bool {
		return len(validation.NameIsDNSSubdomain(name, false)) > 0 || in.count[name] == 0 && r.isNamespaceFull(object.Namespace, in)
	})
	for _, name := range named {
		if in.count[name]++; in.count[name] == 1 {
			in.markReferenceChanged(name)
		}
	}
	for _, name := range before {
		if in.count[name]--; in.count[name] == 0 {
			delete(in.count, name)
			in.markReferenceChanged(name)
		}
	}
	if r.by[object] = named; len(named) == 0 {
		delete(r.by, object)
	}
}

// isNamespaceFull reports whether a namespace has as many followed Secrets as allowed.
func (r *secretReferences) isNamespaceFull(namespace string, in *namedSecrets) bool {
	if len(in.count) < maxNamed {
		return false
	}
	if !in.full {
		in.full = true
		r.log.Warn("objects name too many Secrets; changes of some are seen late", "namespace", namespace, "followed", maxNamed)
	}
	return true
}

// markReferenceChanged records that a Secret became named or is no longer named.
func (n *namedSecrets) markReferenceChanged(name string) {
	n.turned[name] = true
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// referenceState reports whether a Secret is named, and whether that has changed since the last take.
func (r *secretReferences) referenceState(namespace, name string) (named, turned bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.names[namespace]
	return in.count[name] > 0, in.turned[name]
}

// takeChangedNames returns the changed names and clears them.
func (r *secretReferences) takeChangedNames(namespace string) (turned []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.names[namespace]
	for name := range in.turned {
		turned = append(turned, name)
	}
	clear(in.turned)
	return turned
}

// putBackChangedNames returns names from take that could not be processed.
func (r *secretReferences) putBackChangedNames(namespace string, turned []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range turned {
		r.names[namespace].markReferenceChanged(name)
	}
}

// changedNamesChannel returns a channel that is readable after a change of names.
func (r *secretReferences) changedNamesChannel(namespace string) <-chan struct{} {
	return r.names[namespace].wake
}
