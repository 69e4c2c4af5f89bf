package secrets

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// namespaceSecrets follows the Secrets of one namespace. One reflector calls list and watch, never at the same time.
type namespaceSecrets struct {
	kind       kinds.Kind
	server     apiServer
	references *secretReferences
	// shown holds the last states of Secrets that the reflector received, without content.
	shown map[string]event.Change
	// refused means that the missing right was logged.
	refused atomic.Bool
}

// readNamedPage reads a page and returns the Secrets in it that objects name.
func (s *namespaceSecrets) readNamedPage(ctx context.Context, token string) (source.Page, error) {
	if token == "" {
		clear(s.shown)
		s.references.takeChangedNames(s.kind.Namespace) // The list covers all names of this moment.
	}
	page, err := s.server.List(ctx, s.kind, token)
	if err != nil {
		return page, err
	}
	return s.filterAndRememberPage(page), nil
}

// filterAndRememberPage reduces a page to the named Secrets, and remembers them.
func (s *namespaceSecrets) filterAndRememberPage(page source.Page) source.Page {
	page = s.filterNamedSecrets(page)
	for _, o := range page.Objects {
		s.rememberYieldedSecret(o.Change)
	}
	return page
}

// filterNamedSecrets reduces a page to the named Secrets. Their version becomes that of the read.
func (s *namespaceSecrets) filterNamedSecrets(page source.Page) source.Page {
	page.Objects = slices.DeleteFunc(page.Objects, func(o source.Object) bool {
		named, _ := s.references.referenceState(s.kind.Namespace, o.Key.Name)
		return !named
	})
	for i := range page.Objects {
		page.Objects[i].ResourceVersion = page.Version
	}
	return page
}

func (s *namespaceSecrets) rememberYieldedSecret(c event.Change) {
	c.Object = nil
	s.shown[c.Key.Name] = c
}

// watchResult is one result of a watch.
type watchResult struct {
	source.Event

	err error
}

// watchNamedSecrets yields the changes after a version, and the Secrets that became named or are no longer named. It
// ends with the watch of the server.
func (s *namespaceSecrets) watchNamedSecrets(ctx context.Context, version string, yield func(source.Event, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	events := make(chan watchResult)
	watching.Go(func() {
		defer close(events)
		for e, err := range s.server.Watch(ctx, s.kind, version) {
			select {
			case events <- watchResult{e, err}:
			case <-ctx.Done():
				return
			}
		}
	})
	for {
		select {
		case <-s.references.changedNamesChannel(s.kind.Namespace):
			if goOn, err := s.yieldChangedReferences(ctx, version, yield); err != nil || !goOn {
				return err
			}
		case e, open := <-events:
			if !open || e.err != nil {
				return e.err
			}
			if version = e.Version; !yield(s.filterEvent(e.Event), nil) {
				return nil
			}
		}
	}
}

// filterEvent returns the event for the reflector: the event itself or, for other Secrets, only the progress of the
// watch.
func (s *namespaceSecrets) filterEvent(e source.Event) source.Event {
	name, progress := e.Key.Name, source.Event{Version: e.Version, Bookmark: true}
	if e.Bookmark {
		return e
	}
	named, turned := s.references.referenceState(s.kind.Namespace, name)
	was, known := s.shown[name]
	switch {
	case !named && known: // A new reference reads it again.
		return s.removeUnnamedSecret(name, e.Version)
	case !named, !known && (turned || e.Deleted), known && !isLaterVersion(e.ResourceVersion, was.ResourceVersion):
		return progress
	case e.Deleted:
		delete(s.shown, name)
	default:
		s.rememberYieldedSecret(e.Change)
	}
	return e
}

// isLaterVersion reports whether a version is later. It also returns true if the two cannot be compared, so that no
// change is lost.
func isLaterVersion(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}

// yieldChangedReferences yields the Secrets that became named or are no longer named.
func (s *namespaceSecrets) yieldChangedReferences(ctx context.Context, version string, yield func(source.Event, error) bool) (goOn bool, err error) {
	turned := s.references.takeChangedNames(s.kind.Namespace)
	for i, name := range turned {
		goOn, err := s.yieldChangedReference(ctx, name, version, yield)
		if err != nil || !goOn {
			s.references.putBackChangedNames(s.kind.Namespace, turned[i:])
			return goOn, err
		}
	}
	return true, nil
}

func (s *namespaceSecrets) yieldChangedReference(ctx context.Context, name, version string, yield func(source.Event, error) bool) (goOn bool, err error) {
	named, _ := s.references.referenceState(s.kind.Namespace, name)
	_, known := s.shown[name]
	if named == known {
		return true, nil
	}
	if known {
		return yield(s.removeUnnamedSecret(name, version), nil), nil
	}
	page, err := s.server.ListNamed(ctx, s.kind, name)
	if err != nil {
		return true, err
	}
	for _, o := range s.filterAndRememberPage(page).Objects {
		if !yield(source.Event{Object: o, Version: version}, nil) {
			return false, nil
		}
	}
	return true, nil
}

// removeUnnamedSecret returns a deletion for a Secret that no object names any more.
func (s *namespaceSecrets) removeUnnamedSecret(name, version string) source.Event {
	c := s.shown[name]
	delete(s.shown, name)
	c.Deleted, c.ObservedAt = true, time.Now()
	return source.Event{Object: source.Object{Change: c}, Version: version}
}
