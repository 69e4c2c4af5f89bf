package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// ApplyStatus applies the fields in status as this service's part of the status of obj and returns the new state. The
// error is [ErrConflict] if obj is not the newest state. Without this check, the API server would accept the status
// for another object with the same name. The error is [ErrNotFound] if obj does not exist.
func (c *Client) ApplyStatus(ctx context.Context, kind kinds.Kind, obj event.Change, status any) (event.Change, error) {
	patch, err := json.Marshal(map[string]any{
		"apiVersion": apiVersion(kind.Group, kind.Version), "kind": kind.Kind,
		"metadata": map[string]any{
			"name": obj.Key.Name, "namespace": obj.Key.Namespace, "uid": obj.UID, versionField: obj.ResourceVersion,
		},
		"status": status,
	})
	if err != nil {
		return event.Change{}, fmt.Errorf("encoding status of %s: %w", obj.Key, err)
	}
	now, err := c.sendAndDecode(ctx, kind, c.newPatchRequest(kind, obj.Key, types.ApplyPatchType, patch).SubResource("status").Param("force", "true"))
	if err != nil {
		return event.Change{}, fmt.Errorf("applying status of %s: %w", obj.Key, err)
	}
	return now, nil
}
