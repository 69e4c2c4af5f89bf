package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// AddFinalizer adds a finalizer and returns the newest state. The error is [ErrNotFound] if the object does not exist
// or was re-created, and [ErrConflict] if it is being deleted.
func (c *Client) AddFinalizer(ctx context.Context, kind kinds.Kind, obj event.Change, finalizer string) (event.Change, error) {
	return c.AddFinalizers(ctx, kind, obj, finalizer)
}

// AddFinalizers adds several finalizers at once; see [Client.AddFinalizer].
func (c *Client) AddFinalizers(ctx context.Context, kind kinds.Kind, obj event.Change, finalizers ...string) (event.Change, error) {
	now, err := c.editFinalizers(ctx, kind, obj, func(m metav1.ObjectMeta) ([]string, error) {
		lacking := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return slices.Contains(m.Finalizers, f) })
		if len(lacking) > 0 && m.DeletionTimestamp != nil {
			return nil, fault.Unavailable(fmt.Errorf("%w: it is being deleted", ErrConflict))
		}
		return slices.Concat(m.Finalizers, lacking), nil
	})
	if err != nil {
		return event.Change{}, fmt.Errorf("adding finalizers %v to %s: %w", finalizers, obj.Key, err)
	}
	return now, nil
}

// RemoveFinalizer removes a finalizer. It returns no error if the object does not exist or was re-created. The
// returned state is Deleted if the object was in deletion and has no finalizer left.
func (c *Client) RemoveFinalizer(ctx context.Context, kind kinds.Kind, obj event.Change, finalizer string) (event.Change, error) {
	var free bool
	now, err := c.editFinalizers(ctx, kind, obj, func(m metav1.ObjectMeta) ([]string, error) {
		others := slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return f == finalizer })
		free = m.DeletionTimestamp != nil && len(others) == 0
		return others, nil
	})
	if errors.Is(err, ErrNotFound) {
		obj.Deleted = true
		return obj, nil
	}
	if err != nil {
		return event.Change{}, fmt.Errorf("removing finalizer %s from %s: %w", finalizer, obj.Key, err)
	}
	now.Deleted = free
	return now, nil
}

// editFinalizers writes the finalizers that edit returns. It starts from the given state, and reads the object again
// after a conflict.
func (c *Client) editFinalizers(ctx context.Context, kind kinds.Kind, obj event.Change, edit func(metav1.ObjectMeta) ([]string, error)) (event.Change, error) {
	now, err := obj, error(nil)
	for range maxConflicts {
		if err != nil || len(now.Object) == 0 {
			if now, err = c.Get(ctx, kind, obj.Key.Namespace, obj.Key.Name); err != nil {
				return event.Change{}, err
			}
		}
		if now.UID != obj.UID {
			return event.Change{}, fmt.Errorf("%w: another object has its name now", ErrNotFound)
		}
		var is metav1.PartialObjectMetadata
		if err := now.Decode(&is); err != nil {
			return event.Change{}, err
		}
		finalizers, editErr := edit(is.ObjectMeta)
		if editErr != nil || slices.Equal(finalizers, is.Finalizers) {
			return now, editErr
		}
		patch, encodeErr := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": obj.UID, versionField: now.ResourceVersion, "finalizers": finalizers,
		}})
		if encodeErr != nil {
			return event.Change{}, fmt.Errorf("encoding finalizers: %w", encodeErr)
		}
		if now, err = c.sendAndDecode(ctx, kind, c.newPatchRequest(kind, obj.Key, types.MergePatchType, patch)); !errors.Is(err, ErrConflict) {
			return now, err
		}
	}
	return event.Change{}, err
}
