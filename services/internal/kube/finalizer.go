package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// AddFinalizer holds obj until [Client.RemoveFinalizer], and returns the newest
// state. It is [ErrNotFound] when the object is gone or re-created, and
// [ErrConflict] when it is in deletion and takes no more finalizers.
func (c *Client) AddFinalizer(ctx context.Context, kind kinds.Kind, obj event.Change, finalizer string) (event.Change, error) {
	return c.AddFinalizers(ctx, kind, obj, finalizer)
}

// AddFinalizers is [Client.AddFinalizer] for several at once.
func (c *Client) AddFinalizers(ctx context.Context, kind kinds.Kind, obj event.Change, finalizers ...string) (event.Change, error) {
	u, err := c.editFinalizers(ctx, kind, obj, func(u *unstructured.Unstructured) ([]string, error) {
		has := u.GetFinalizers()
		lacking := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return slices.Contains(has, f) })
		if len(lacking) > 0 && u.GetDeletionTimestamp() != nil {
			return nil, fault.Unavailable(fmt.Errorf("%w: it is being deleted", ErrConflict))
		}
		return append(slices.Clone(has), lacking...), nil
	})
	if err != nil {
		return event.Change{}, fmt.Errorf("adding finalizers %v to %s: %w", finalizers, obj.Key, err)
	}
	return c.change(ctx, kind, u)
}

// RemoveFinalizer lets obj go. An object that is gone or re-created is done. The
// state that it returns is Deleted when nothing holds the object any more.
func (c *Client) RemoveFinalizer(ctx context.Context, kind kinds.Kind, obj event.Change, finalizer string) (event.Change, error) {
	u, err := c.editFinalizers(ctx, kind, obj, func(u *unstructured.Unstructured) ([]string, error) {
		return slices.DeleteFunc(slices.Clone(u.GetFinalizers()), func(f string) bool { return f == finalizer }), nil
	})
	if errors.Is(err, ErrNotFound) {
		obj.Deleted = true
		return obj, nil
	}
	if err != nil {
		return event.Change{}, fmt.Errorf("removing finalizer %s from %s: %w", finalizer, obj.Key, err)
	}
	change, err := c.change(ctx, kind, u)
	change.Deleted = u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0
	return change, err
}

// editFinalizers writes what edit makes of the object's finalizers, starting from
// the state at hand and reading anew whenever that turns out to be old.
func (c *Client) editFinalizers(ctx context.Context, kind kinds.Kind, obj event.Change,
	edit func(*unstructured.Unstructured) ([]string, error),
) (*unstructured.Unstructured, error) {
	api := c.of(kind, obj.Key.Namespace)
	u, err := decode(obj)
	for range attempts {
		if err != nil || u == nil {
			if u, err = api.Get(ctx, obj.Key.Name, metav1.GetOptions{}); err != nil {
				return nil, classify(err)
			}
		}
		if string(u.GetUID()) != obj.UID {
			return nil, fmt.Errorf("%w: another object has its name now", ErrNotFound)
		}
		finalizers, editErr := edit(u)
		if editErr != nil || slices.Equal(finalizers, u.GetFinalizers()) {
			return u, editErr
		}
		patch, encodeErr := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": obj.UID, "resourceVersion": u.GetResourceVersion(), "finalizers": finalizers,
		}})
		if encodeErr != nil {
			return nil, fmt.Errorf("encoding finalizers: %w", encodeErr)
		}
		if u, err = api.Patch(ctx, obj.Key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: c.manager}); err == nil {
			return u, nil
		}
		if err = classify(err); !errors.Is(err, ErrConflict) {
			return nil, err
		}
	}
	return nil, err
}

// decode is obj as the API server sent it; nil when obj came without.
func decode(obj event.Change) (*unstructured.Unstructured, error) {
	if len(obj.Object) == 0 {
		return nil, nil //nolint:nilnil // Nothing to decode is no error.
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(obj.Object); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", obj.Key, err)
	}
	return u, nil
}
