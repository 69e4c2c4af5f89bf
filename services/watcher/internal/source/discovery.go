package source

import (
	"context"
	"fmt"
	"path"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
)

// withServedVersion returns the kind in the version that the API server serves, as far as is known.
func (s *Source) withServedVersion(kind kinds.Kind) kinds.Kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.older[kind.GroupResource] {
		kind.Version, kind.FallbackVersion = kind.FallbackVersion, kind.Version
	}
	return kind
}

// switchVersion switches requests for the kind to its other version.
func (s *Source) switchVersion(r event.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.older[r] = !s.older[r]
}

// confirmNotServed verifies a "not found". Objects of a kind that is not served count as deleted, so any doubt is an
// error. It is also an error if the API server has the kind in its other version, which later requests then use.
func (s *Source) confirmNotServed(ctx context.Context, kind kinds.Kind, cause error) error {
	versions, err := s.servedVersions(ctx, kind.GroupResource)
	if err != nil {
		return err
	}
	for _, version := range versions {
		other := kind
		other.Version = version
		switch _, found, err := s.discoverResource(ctx, other); {
		case err != nil:
			return err
		case found && version == kind.Version:
			return fmt.Errorf("the API server is about to serve it, or about to stop: %w", cause)
		case found && version == kind.FallbackVersion:
			s.switchVersion(kind.GroupResource)
			return fmt.Errorf("the API server has it in version %s: %w", version, cause)
		case found:
			return fmt.Errorf("the API server has version %s of it, not %s: apply the CustomResourceDefinition of this release", version, kind.Version)
		}
	}
	return ErrNotServed
}

func (s *Source) servedVersions(ctx context.Context, r event.GroupResource) ([]string, error) {
	if r.Group == "" {
		return []string{"v1"}, nil
	}
	var group metav1.APIGroup
	err := s.sendAndDecode(ctx, s.api.Get().AbsPath("/apis", r.Group), &group)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("discovering versions of %s: %w", r.Group, err)
	}
	var versions []string
	for _, v := range group.Versions {
		versions = append(versions, v.Version)
	}
	return versions, nil
}

func (s *Source) discoverResource(ctx context.Context, kind kinds.Kind) (metav1.APIResource, bool, error) {
	var list metav1.APIResourceList
	err := s.sendAndDecode(ctx, s.api.Get().AbsPath(kube.GroupVersionPath(kind)), &list)
	if apierrors.IsNotFound(err) {
		return metav1.APIResource{}, false, nil
	}
	if err != nil {
		return metav1.APIResource{}, false, fmt.Errorf("discovering %s: %w", path.Join(kind.Group, kind.Version), err)
	}
	i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource })
	if i < 0 {
		return metav1.APIResource{}, false, nil
	}
	return list.APIResources[i], true, nil
}

// ShortNames returns the short names and the singular name of the kind, as kubectl accepts them.
func (s *Source) ShortNames(ctx context.Context, kind kinds.Kind) ([]string, error) {
	resource, _, err := s.discoverResource(ctx, s.withServedVersion(kind))
	return append(resource.ShortNames, resource.SingularName), err
}

// FindServedKind returns the served kind with a name, for use as a kind of targets. It returns [ErrNotServed] if none
// exists.
func (s *Source) FindServedKind(ctx context.Context, of event.GroupResource) (kinds.Kind, error) {
	versions, err := s.servedVersions(ctx, of)
	if err != nil {
		return kinds.Kind{}, err
	}
	for _, version := range versions {
		kind := kinds.TargetKind(of, version, "")
		resource, found, err := s.discoverResource(ctx, kind)
		if err != nil {
			return kinds.Kind{}, err
		}
		if !found {
			continue
		}
		for _, verb := range []string{"list", "watch"} {
			if !slices.Contains(resource.Verbs, verb) {
				return kinds.Kind{}, fmt.Errorf("%w: the API server has no %s of %s", ErrCannotBeFollowed, verb, of)
			}
		}
		kind.Kind, kind.ClusterScoped = resource.Kind, !resource.Namespaced
		return kind, nil
	}
	return kinds.Kind{}, fmt.Errorf("looking for %s: %w", of, ErrNotServed)
}
