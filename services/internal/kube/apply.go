package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
)

const (
	// never is a resource version that no object has: the first that etcd gives is 2. To
	// apply with it is to create or to conflict.
	never    = "1"
	pageSize = 500
)

// Apply server-side-applies object, which has the key of seen, and returns the new state. The
// fields that object sets are this service's, whoever else claims them. What was seen last
// must still be the newest state, or, if it has no UID, there must be no such object: else
// it is [ErrConflict].
func (c *Client) Apply(ctx context.Context, kind kinds.Kind, seen event.Change, object any) (event.Change, error) {
	patch, err := patchOf(kind, seen, object)
	if err != nil {
		return event.Change{}, fmt.Errorf("encoding %s: %w", seen.Key, err)
	}
	options := metav1.PatchOptions{FieldManager: c.manager, Force: new(true)}
	u, err := c.of(kind, seen.Key.Namespace).Patch(ctx, seen.Key.Name, types.ApplyPatchType, patch, options)
	if err != nil {
		return event.Change{}, fmt.Errorf("applying %s: %w", seen.Key, classify(err))
	}
	return c.change(ctx, kind, u)
}

func patchOf(kind kinds.Kind, seen event.Change, object any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &u.Object); err != nil {
		return nil, err
	}
	u.SetAPIVersion(apiVersion(kind.Group, kind.Version))
	u.SetKind(kind.Kind)
	u.SetNamespace(seen.Key.Namespace)
	u.SetName(seen.Key.Name)
	if u.SetResourceVersion(never); seen.UID != "" {
		u.SetUID(types.UID(seen.UID))
		u.SetResourceVersion(seen.ResourceVersion)
	}
	return u.MarshalJSON()
}

// Merge changes the given fields of an object, whoever else claims them, and no others, and returns
// the new state. Unless seen is still the newest state, it is [ErrConflict].
func (c *Client) Merge(ctx context.Context, kind kinds.Kind, seen event.Change, fields map[string]any) (event.Change, error) {
	fields = maps.Clone(fields)
	fields["metadata"] = map[string]any{"resourceVersion": seen.ResourceVersion}
	patch, err := json.Marshal(fields)
	if err != nil {
		return event.Change{}, fmt.Errorf("encoding %s: %w", seen.Key, err)
	}
	u, err := c.of(kind, seen.Key.Namespace).Patch(ctx, seen.Key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: c.manager})
	if err = classify(err); errors.Is(err, ErrNotFound) {
		err = fault.Unavailable(fmt.Errorf("%w: %w", ErrConflict, err))
	}
	if err != nil {
		return event.Change{}, fmt.Errorf("changing %s: %w", seen.Key, err)
	}
	return c.change(ctx, kind, u)
}

// Delete deletes obj if it is still the newest state, else it is [ErrConflict]. An object
// that is gone is done.
func (c *Client) Delete(ctx context.Context, kind kinds.Kind, obj event.Change) error {
	uid := types.UID(obj.UID)
	err := classify(c.of(kind, obj.Key.Namespace).Delete(ctx, obj.Key.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &obj.ResourceVersion},
	}))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("deleting %s: %w", obj.Key, err)
	}
	return nil
}

// List yields the objects of a namespace as they are now, until an error, which comes last.
func (c *Client) List(ctx context.Context, kind kinds.Kind, namespace string) iter.Seq2[event.Change, error] {
	return func(yield func(event.Change, error) bool) {
		options := metav1.ListOptions{Limit: pageSize}
		for {
			page, err := c.of(kind, namespace).List(ctx, options)
			if err != nil {
				yield(event.Change{}, fmt.Errorf("listing %s in %s: %w", kind.GroupResource, namespace, classify(err)))
				return
			}
			for i := range page.Items {
				change, err := c.change(ctx, kind, &page.Items[i])
				if !yield(change, err) || err != nil {
					return
				}
			}
			if options.Continue = page.GetContinue(); options.Continue == "" {
				return
			}
		}
	}
}
