// Package secrets limits the Secrets that the reflector follows to those that objects in some namespaces name. It
// stands between the reflector and the API server: it reads the references from the passing objects, and hides all
// other Secrets.
//
// A Secret that becomes named is read at that moment, and one that is no longer named is reported as deleted. To order
// both, the version of a state is the one of the read and not that of the last write of the Secret. Its content, which
// is no more than its identity and version, stays as it was written.
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

// apiServer is the API server.
type apiServer interface {
	ClusterUID(ctx context.Context) (string, error)
	List(ctx context.Context, kind kinds.Kind, token string) (source.Page, error)
	ListNamed(ctx context.Context, kind kinds.Kind, name string) (source.Page, error)
	Watch(ctx context.Context, kind kinds.Kind, version string) iter.Seq2[source.Event, error]
	CurrentResourceVersion(ctx context.Context, kind kinds.Kind) (string, error)
	FindServedKind(ctx context.Context, of event.GroupResource) (kinds.Kind, error)
	ContentHash(kind kinds.Kind, published event.Change) (string, error)
}

// Source is the API server as the reflector reads it.
type Source struct {
	apiServer

	references *secretReferences
	namespaces map[string]*namespaceSecrets
	log        *slog.Logger
}

// SecretKinds returns the kinds by which Secrets are followed: one for each of some namespaces, and one without Secrets
// for all other namespaces.
func SecretKinds(namespaces []string) []kinds.Kind {
	all := []kinds.Kind{kinds.Secrets()}
	for _, namespace := range namespaces {
		all = append(all, kinds.Secrets().InNamespace(namespace))
	}
	return all
}

// New returns a source for one run of a reflector of some kinds.
func New(from apiServer, followed []kinds.Kind, log *slog.Logger) *Source {
	s := &Source{apiServer: from, references: newSecretReferences(followed, log), namespaces: map[string]*namespaceSecrets{}, log: log}
	for _, kind := range followed {
		if kind.ReferencedOnly && kind.Namespace != "" {
			s.namespaces[kind.Namespace] = &namespaceSecrets{kind: kind, server: from, references: s.references, shown: map[string]event.Change{}}
		}
	}
	return s
}

// List reads one page of a list.
func (s *Source) List(ctx context.Context, kind kinds.Kind, token string) (source.Page, error) {
	if !kind.ReferencedOnly {
		page, err := s.apiServer.List(ctx, kind, token)
		s.references.recordListPage(kind, token, page, err)
		return page, err
	}
	of, err := s.namespaceSecretsOf(kind)
	if err != nil {
		return source.Page{}, err
	}
	if err := s.references.waitUntilListed(ctx); err != nil {
		return source.Page{}, err
	}
	page, err := of.readNamedPage(ctx, token)
	return page, s.wrapForbiddenError(ctx, of, err, source.ErrNotServed)
}

// ListNamed lists the objects with a name: a Secret only if another object names it.
func (s *Source) ListNamed(ctx context.Context, kind kinds.Kind, name string) (source.Page, error) {
	if !kind.ReferencedOnly {
		return s.apiServer.ListNamed(ctx, kind, name)
	}
	of, err := s.namespaceSecretsOf(kind)
	if err != nil {
		return source.Page{}, err
	}
	page, err := s.apiServer.ListNamed(ctx, kind, name)
	return of.filterNamedSecrets(page), s.wrapForbiddenError(ctx, of, err, source.ErrNotServed)
}

// Watch yields the changes after a version.
func (s *Source) Watch(ctx context.Context, kind kinds.Kind, version string) iter.Seq2[source.Event, error] {
	if !kind.ReferencedOnly {
		return s.references.recordWatchEvents(kind, s.apiServer.Watch(ctx, kind, version))
	}
	return func(yield func(source.Event, error) bool) {
		of, err := s.namespaceSecretsOf(kind)
		if err == nil {
			err = s.wrapForbiddenError(ctx, of, of.watchNamedSecrets(ctx, version, yield), source.ErrExpired)
		}
		if err != nil {
			yield(source.Event{}, err)
		}
	}
}

// CurrentResourceVersion returns the current version of the kind.
func (s *Source) CurrentResourceVersion(ctx context.Context, kind kinds.Kind) (string, error) {
	if !kind.ReferencedOnly {
		return s.apiServer.CurrentResourceVersion(ctx, kind)
	}
	of, err := s.namespaceSecretsOf(kind)
	if err != nil {
		return "", err
	}
	version, err := s.apiServer.CurrentResourceVersion(ctx, kind)
	return version, s.wrapForbiddenError(ctx, of, err, source.ErrNotServed)
}

// namespaceSecretsOf returns the namespace in which a kind is followed.
func (s *Source) namespaceSecretsOf(kind kinds.Kind) (*namespaceSecrets, error) {
	if of := s.namespaces[kind.Namespace]; of != nil {
		return of, nil
	}
	return nil, fmt.Errorf("Secrets are followed in --secret-namespaces alone: %w", source.ErrNotServed) //nolint:staticcheck // It is the name of the kind.
}

// wrapForbiddenError adds to the error of a missing right the error that the reflector handles, and logs the right
// once.
func (s *Source) wrapForbiddenError(ctx context.Context, of *namespaceSecrets, err, as error) error {
	if !apierrors.IsForbidden(err) {
		if err == nil {
			of.refused.Store(false)
		}
		return err
	}
	if !of.refused.Swap(true) {
		s.log.WarnContext(ctx, "the Secrets of a namespace may not be followed; until they are, changes of passwords are seen late",
			"namespace", of.kind.Namespace, "remedy", rbac.ServiceAccount{Service: topology.Watcher}.BindSecretsCommand(of.kind.Namespace), "error", err)
	}
	return errors.Join(as, err)
}
