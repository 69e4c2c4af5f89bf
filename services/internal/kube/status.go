package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// ApplyStatus makes the fields of status, and no others, this service's part of
// obj's status, and returns the new state. With cas it does so only if obj is
// still the newest state. Another object of the same name is left alone. Both
// refusals are [ErrConflict]; an object that is gone is [ErrNotFound].
func (c *Client) ApplyStatus(ctx context.Context, kind kinds.Kind, obj event.Change, status any, cas bool) (event.Change, error) {
	version := obj.ResourceVersion
	var err error
	for range attempts {
		var u *unstructured.Unstructured
		if u, err = c.applyStatus(ctx, kind, obj.Key, version, status); err == nil {
			return c.change(ctx, kind, u)
		}
		if cas || !errors.Is(err, ErrConflict) {
			break
		}
		if version, err = c.versionOf(ctx, kind, obj); err != nil {
			break
		}
	}
	return event.Change{}, fmt.Errorf("applying status of %s: %w", obj.Key, err)
}

// applyStatus always names a version, because the API server would not mind a
// status that was made for another object: it ignores the uid of one.
func (c *Client) applyStatus(ctx context.Context, kind kinds.Kind, key event.Key, version string, status any) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{
		"apiVersion": apiVersion(kind.Group, kind.Version), "kind": kind.Kind,
		"metadata": map[string]any{"name": key.Name, "namespace": key.Namespace, "resourceVersion": version},
		"status":   status,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	force := true
	u, err := c.of(kind, key.Namespace).Patch(ctx, key.Name, types.ApplyPatchType, patch,
		metav1.PatchOptions{FieldManager: c.manager, Force: &force}, "status")
	return u, classify(err)
}

// versionOf is the newest version of obj.
func (c *Client) versionOf(ctx context.Context, kind kinds.Kind, obj event.Change) (string, error) {
	u, err := c.of(kind, obj.Key.Namespace).Get(ctx, obj.Key.Name, metav1.GetOptions{})
	if err != nil {
		return "", classify(err)
	}
	if string(u.GetUID()) != obj.UID {
		return "", fault.Unavailable(fmt.Errorf("%w: another object has its name now", ErrConflict))
	}
	return u.GetResourceVersion(), nil
}
