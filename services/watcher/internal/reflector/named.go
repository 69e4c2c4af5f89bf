package reflector

import (
	"context"
	"iter"
	"slices"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
)

// Kinds that are followed by namespace have a reflector for each, and one for all other namespaces, in which there is
// nothing: what is on the stream of those goes.

// storedMessages returns the messages of the kind on the stream, in its namespace if it has one.
func (k *kindReflector) storedMessages(ctx context.Context, bodies bool) iter.Seq2[publish.StoredMessage, error] {
	if k.kind.Namespace != "" {
		return k.cfg.Publisher.ReadAllInNamespace(ctx, k.cfg.Cluster, k.kind.GroupResource, k.kind.Namespace, bodies)
	}
	return k.cfg.Publisher.ReadAll(ctx, k.cfg.Cluster, k.kind.GroupResource, bodies)
}

// isOfOtherReflector reports whether another reflector keeps an object.
func (k *kindReflector) isOfOtherReflector(head publish.Entry) bool {
	return k.kind.ReferencedOnly && k.kind.Namespace == "" && slices.ContainsFunc(k.cfg.Kinds, func(other kinds.Kind) bool {
		return other == k.kind.InNamespace(head.Key.Namespace) && other != k.kind
	})
}

// publishMarker publishes a marker, unless the kind has none.
func (k *kindReflector) publishMarker(ctx context.Context, m *eventv1.SnapshotMarker) error {
	if k.kind.ReferencedOnly {
		return nil
	}
	return k.cfg.Publisher.PublishMarker(ctx, m)
}
