package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// ApplyStatus applies the fields of status, and no others, as this service's part of the status of obj, and returns the
// new state. If obj is no longer the newest state, the error is [ErrConflict]. Without this check the API server would
// accept a status for another object of the name. If obj is gone, the error is [ErrNotFound].
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
