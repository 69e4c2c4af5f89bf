package kube

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Origin is where objects come from: the cluster's name on the bus, and its UID.
type Origin struct {
	Cluster, Epoch string
}

// Change is u, an object of the given kind, as an event. It leaves u as it is. The
// caller adds what u cannot know: Deleted, ObservedAt and Traceparent.
func (o Origin) Change(kind kinds.Kind, u *unstructured.Unstructured) (event.Change, error) {
	key := event.Key{Cluster: o.Cluster, GroupResource: kind.GroupResource, Namespace: u.GetNamespace(), Name: u.GetName()}
	object, err := json.Marshal(slim(kind, u.Object))
	if err != nil {
		return event.Change{}, fmt.Errorf("encoding %s: %w", key, err)
	}
	return event.Change{
		Key: key, Version: kind.Version, Kind: kind.Kind,
		UID: string(u.GetUID()), ResourceVersion: u.GetResourceVersion(), Generation: u.GetGeneration(),
		Object: object, Epoch: o.Epoch,
	}, nil
}

// slim is object without what must not or need not travel, sharing the rest with it.
func slim(kind kinds.Kind, object map[string]any) map[string]any {
	out := maps.Clone(object)
	maps.DeleteFunc(out, func(name string, _ any) bool { return kind.MetadataOnly && name != "apiVersion" && name != "kind" })
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return out
	}
	metadata = without(metadata, "managedFields")
	// kubectl keeps a copy of the whole object here, of a Secret's values too.
	if annotations, ok := metadata["annotations"].(map[string]any); ok && kind.MetadataOnly {
		metadata["annotations"] = without(annotations, corev1.LastAppliedConfigAnnotation)
	}
	out["metadata"] = metadata
	return out
}

func without(object map[string]any, name string) map[string]any {
	out := maps.Clone(object)
	delete(out, name)
	return out
}

func apiVersion(group, version string) string {
	return schema.GroupVersion{Group: group, Version: version}.String()
}
