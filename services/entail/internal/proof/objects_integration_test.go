//go:build integration

package proof

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/services/internal/kinds"
)

const core = `module core
type user
type doc
  relations
    define viewer: [user]
    define editor: [user]
`

// list returns the objects of a kind, by name.
func list[T any](ctx context.Context, objects dynamic.Interface, kind kinds.Kind) (map[string]T, error) {
	found, err := objects.Resource(kind.GroupVersionResource()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	byName := map[string]T{}
	for _, item := range found.Items {
		data, err := item.MarshalJSON()
		if err != nil {
			return nil, err
		}
		var t T
		if err := json.Unmarshal(data, &t); err != nil {
			return nil, err
		}
		byName[item.GetName()] = t
	}
	return byName, nil
}
