package impliedrole

import (
	"context"
	"errors"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
)

// namespaceReader reads namespaces at the API server, because the watcher does not publish them.
type namespaceReader struct{ kube *kube.Client }

// hasNamespace reports whether a namespace exists.
func (n namespaceReader) hasNamespace(ctx context.Context, name string) (bool, error) {
	namespaces := kinds.Kind{
		GroupResource: event.GroupResource{Resource: "namespaces"}, Version: "v1", Kind: "Namespace", MetadataOnly: true, ClusterScoped: true,
	}
	_, err := n.kube.Get(ctx, namespaces, "", name)
	if errors.Is(err, kube.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
