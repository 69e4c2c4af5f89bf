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
	now, err := c.answer(ctx, kind, c.patch(kind, seen.Key, types.ApplyPatchType, patch).Param("force", "true"))
	if err != nil {
		return event.Change{}, fmt.Errorf("applying %s: %w", seen.Key, err)
	}
	return now, nil
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

// Create makes object, which has key k, and returns it as it was made. If there is one of that name,
// it is [ErrConflict]. It costs the API server less than [Client.Apply]; who creates then changes by
// [Client.Merge]: what is applied takes out of a list only what was applied before. The object is of a kind
// that Kubernetes itself has, and so travels as protobuf, which both ends read in less time than JSON.
func (c *Client) Create(ctx context.Context, kind kinds.Kind, k event.Key, object runtime.Object) (event.Change, error) {
	made, err := about(c.protobuf.Post(), kind, k.Namespace).Param("fieldManager", c.manager).Body(object).Do(ctx).Get()
	if err != nil {
		return event.Change{}, fmt.Errorf("creating %s: %w", k, classify(err))
	}
	if o, err := meta.Accessor(made); err == nil {
		o.SetManagedFields(nil)
	}
	raw, err := json.Marshal(made)
	if err != nil {
		return event.Change{}, fmt.Errorf("encoding %s: %w", k, err)
	}
	return c.change(ctx, kind, raw)
}

// Merge changes the given fields of an object, whoever else claims them, and no others, and returns
// the new state. Lists are given as a whole, and metadata as a map. Unless seen is still the newest
// state, it is [ErrConflict].
func (c *Client) Merge(ctx context.Context, kind kinds.Kind, seen event.Change, fields map[string]any) (event.Change, error) {
	fields, metadata := maps.Clone(fields), map[string]any{versionField: seen.ResourceVersion}
	if given, ok := fields["metadata"].(map[string]any); ok {
		maps.Copy(metadata, given)
	}
	fields["metadata"] = metadata
	patch, err := json.Marshal(fields)
	if err != nil {
		return event.Change{}, fmt.Errorf("encoding %s: %w", seen.Key, err)
	}
	now, err := c.answer(ctx, kind, c.patch(kind, seen.Key, types.MergePatchType, patch))
	if errors.Is(err, ErrNotFound) {
		err = fault.Unavailable(fmt.Errorf("%w: %w", ErrConflict, err))
	}
	if err != nil {
		return event.Change{}, fmt.Errorf("changing %s: %w", seen.Key, err)
	}
	return now, nil
}

// Delete deletes obj if it is still the newest state, else it is [ErrConflict]. An object
// that is gone is done.
func (c *Client) Delete(ctx context.Context, kind kinds.Kind, obj event.Change) error {
	uid := types.UID(obj.UID)
	err := classify(c.api.Resource(kind.Served()).Namespace(obj.Key.Namespace).Delete(ctx, obj.Key.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &obj.ResourceVersion},
	}))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("deleting %s: %w", obj.Key, err)
	}
	return nil
}

// List yields the objects of a namespace as they are now, until an error, which comes last. There may be very many: of each it is
// told what the API server sent, and of what kind it is.
func (c *Client) List(ctx context.Context, kind kinds.Kind, namespace string) iter.Seq2[event.Change, error] {
	of := event.Change{Key: event.Key{Cluster: c.cluster, GroupResource: kind.GroupResource, Namespace: namespace}}
	return func(yield func(event.Change, error) bool) {
		for token := ""; ; {
			var page struct {
				Metadata metav1.ListMeta   `json:"metadata"`
				Items    []json.RawMessage `json:"items"`
			}
			raw, err := send(ctx, about(c.paths.Get(), kind, namespace).Param("limit", strconv.Itoa(pageSize)).Param("continue", token))
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
