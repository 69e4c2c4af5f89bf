package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
)

const (
	// nonexistentVersion is a resourceVersion that no object has, because etcd starts at 2. With it, an apply either
	// creates the object or returns a conflict.
	nonexistentVersion = "1"
	pageSize           = 500
)

// Apply writes object by server-side apply and returns the new state. This service then owns the fields that object
// sets, even if another manager owned them before. seen must be the newest state, or have no UID if the object must
// not exist. Otherwise the error is [ErrConflict].
func (c *Client) Apply(ctx context.Context, kind kinds.Kind, seen event.Change, object any) (event.Change, error) {
	patch, err := encodeApplyPatch(kind, seen, object)
	if err != nil {
		return event.Change{}, fmt.Errorf("encoding %s: %w", seen.Key, err)
	}
	now, err := c.sendAndDecode(ctx, kind, c.newPatchRequest(kind, seen.Key, types.ApplyPatchType, patch).Param("force", "true"))
	if err != nil {
		return event.Change{}, fmt.Errorf("applying %s: %w", seen.Key, err)
	}
	return now, nil
}

func encodeApplyPatch(kind kinds.Kind, seen event.Change, object any) ([]byte, error) {
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
	if u.SetResourceVersion(nonexistentVersion); seen.UID != "" {
		u.SetUID(types.UID(seen.UID))
		u.SetResourceVersion(seen.ResourceVersion)
	}
	return u.MarshalJSON()
}

// Create creates object with the key k and returns its state. If the name is taken, the error is [ErrConflict]. The
// kind must be built into Kubernetes, because the object is sent as protobuf.
//
// Create costs the API server less than [Client.Apply]. Change a created object only with [Client.MergePatch]:
// server-side apply would not remove list items that Create wrote.
func (c *Client) Create(ctx context.Context, kind kinds.Kind, k event.Key, object runtime.Object) (event.Change, error) {
	made, err := withObjectPath(c.protobuf.Post(), kind, k.Namespace).Param("fieldManager", c.manager).Body(object).Do(ctx).Get()
	if err != nil {
		return event.Change{}, fmt.Errorf("creating %s: %w", k, classifyError(err))
	}
	if o, err := meta.Accessor(made); err == nil {
		o.SetManagedFields(nil)
	}
	raw, err := json.Marshal(made)
	if err != nil {
		return event.Change{}, fmt.Errorf("encoding %s: %w", k, err)
	}
	return c.decodeChange(ctx, kind, raw)
}

// MergePatch changes the given fields of an object, even if another manager owns them, and returns the new state. It
// replaces lists as a whole. fields["metadata"], if present, must be a map[string]any. The error is [ErrConflict] if
// seen is not the newest state.
func (c *Client) MergePatch(ctx context.Context, kind kinds.Kind, seen event.Change, fields map[string]any) (event.Change, error) {
	fields, metadata := maps.Clone(fields), map[string]any{versionField: seen.ResourceVersion}
	if given, ok := fields["metadata"].(map[string]any); ok {
		maps.Copy(metadata, given)
	}
	fields["metadata"] = metadata
	patch, err := json.Marshal(fields)
	if err != nil {
		return event.Change{}, fmt.Errorf("encoding %s: %w", seen.Key, err)
	}
	now, err := c.sendAndDecode(ctx, kind, c.newPatchRequest(kind, seen.Key, types.MergePatchType, patch))
	if errors.Is(err, ErrNotFound) {
		err = fault.Unavailable(fmt.Errorf("%w: %w", ErrConflict, err))
	}
	if err != nil {
		return event.Change{}, fmt.Errorf("changing %s: %w", seen.Key, err)
	}
	return now, nil
}

// Delete deletes obj if it is still the newest state; otherwise the error is [ErrConflict]. Delete returns nil if the
// object does not exist.
func (c *Client) Delete(ctx context.Context, kind kinds.Kind, obj event.Change) error {
	uid := types.UID(obj.UID)
	err := classifyError(c.api.Resource(kind.GroupVersionResource()).Namespace(obj.Key.Namespace).Delete(ctx, obj.Key.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &obj.ResourceVersion},
	}))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("deleting %s: %w", obj.Key, err)
	}
	return nil
}

// List yields the objects of a namespace. An error ends the sequence. To save memory, each element has only the kind
// and the bytes that the API server sent.
func (c *Client) List(ctx context.Context, kind kinds.Kind, namespace string) iter.Seq2[event.Change, error] {
	of := event.Change{Key: event.Key{Cluster: c.cluster, GroupResource: kind.GroupResource, Namespace: namespace}}
	return func(yield func(event.Change, error) bool) {
		for token := ""; ; {
			var page struct {
				Metadata metav1.ListMeta   `json:"metadata"`
				Items    []json.RawMessage `json:"items"`
			}
			raw, err := sendRequest(ctx, withObjectPath(c.paths.Get(), kind, namespace).Param("limit", strconv.Itoa(pageSize)).Param("continue", token))
			if err == nil {
				err = json.Unmarshal(raw, &page)
			}
			if err != nil {
				yield(event.Change{}, fmt.Errorf("listing %s in %s: %w", kind.GroupResource, namespace, err))
				return
			}
			for _, item := range page.Items {
				if of.Object = item; !yield(of, nil) {
					return
				}
			}
			if token = page.Metadata.Continue; token == "" {
				return
			}
		}
	}
}
