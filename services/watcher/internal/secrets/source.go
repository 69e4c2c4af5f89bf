// Package secrets has the reflector follow, of the Secrets of some namespaces, those that objects name. It stands before the API
// server: it sees which Secrets the objects name that go by, and lets no other Secret through.
//
// A Secret that nobody named before is read when somebody does, and one that nobody names any more is told to be deleted. So that
// the order of both is known, a state is of the version at which it was read, and not of that at which the Secret was written; its
// content, of which there is no more than identity and version, is as it was written.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// server is the API server.
type server interface {
	Epoch(ctx context.Context) (string, error)
	List(ctx context.Context, kind kinds.Kind, token string) (source.Page, error)
	ListNamed(ctx context.Context, kind kinds.Kind, name string) (source.Page, error)
	Watch(ctx context.Context, kind kinds.Kind, version string) iter.Seq2[source.Event, error]
	Version(ctx context.Context, kind kinds.Kind) (string, error)
	Find(ctx context.Context, of event.GroupResource) (kinds.Kind, error)
}

// Source is the API server as the reflector sees it.
type Source struct {
	server

	references *references
	namespaces map[string]*namespaced
	log        *slog.Logger
}

// Kinds are Secrets as they are to be followed: in each of some namespaces, and in all others not at all.
func Kinds(namespaces []string) []kinds.Kind {
	all := []kinds.Kind{kinds.Secrets()}
	for _, namespace := range namespaces {
		all = append(all, kinds.Secrets().In(namespace))
	}
	return all
}

// New makes a source for a reflector of some kinds, for as long as that runs.
func New(from server, followed []kinds.Kind, log *slog.Logger) *Source {
	s := &Source{server: from, references: newReferences(followed, log), namespaces: map[string]*namespaced{}, log: log}
	for _, kind := range followed {
		if kind.Named && kind.Namespace != "" {
			s.namespaces[kind.Namespace] = &namespaced{kind: kind, server: from, references: s.references, shown: map[string]event.Change{}}
		}
	}
	return s
}

// List reads one page of a list.
func (s *Source) List(ctx context.Context, kind kinds.Kind, token string) (source.Page, error) {
	if !kind.Named {
		page, err := s.server.List(ctx, kind, token)
		s.references.list(kind, token, page, err)
		return page, err
	}
	of, err := s.in(kind)
	if err != nil {
		return source.Page{}, err
	}
	if err := s.references.await(ctx); err != nil {
		return source.Page{}, err
	}
	page, err := of.list(ctx, token)
	return page, s.refused(ctx, of, err, source.ErrNotServed)
}

// Watch tells what changes after a version.
func (s *Source) Watch(ctx context.Context, kind kinds.Kind, version string) iter.Seq2[source.Event, error] {
	if !kind.Named {
		return s.references.watch(kind, s.server.Watch(ctx, kind, version))
	}
	return func(yield func(source.Event, error) bool) {
		of, err := s.in(kind)
		if err == nil {
			err = s.refused(ctx, of, of.watch(ctx, version, yield), source.ErrExpired)
		}
		if err != nil {
			yield(source.Event{}, err)
		}
	}
}

// Version is where the kind is now.
func (s *Source) Version(ctx context.Context, kind kinds.Kind) (string, error) {
	if !kind.Named {
		return s.server.Version(ctx, kind)
	}
	of, err := s.in(kind)
	if err != nil {
		return "", err
	}
	version, err := s.server.Version(ctx, kind)
	return version, s.refused(ctx, of, err, source.ErrNotServed)
}

// in is the namespace that a kind is followed in.
func (s *Source) in(kind kinds.Kind) (*namespaced, error) {
	if of := s.namespaces[kind.Namespace]; of != nil {
		return of, nil
	}
	return nil, fmt.Errorf("Secrets are followed in --secret-namespaces alone: %w", source.ErrNotServed) //nolint:staticcheck // It is the name of the kind.
}

// refused makes of a right that lacks what the reflector is to take it for, and tells people once.
func (s *Source) refused(ctx context.Context, of *namespaced, err, as error) error {
	if !apierrors.IsForbidden(err) {
		if err == nil {
			of.refused.Store(false)
		}
		return err
	}
	if !of.refused.Swap(true) {
		s.log.WarnContext(ctx, "the Secrets of a namespace may not be followed; until they are, changes of passwords are seen late",
			"namespace", of.kind.Namespace, "remedy", rbac.Account{Service: topology.Watcher}.BindSecrets(of.kind.Namespace), "error", err)
	}
	return errors.Join(as, err)
}
