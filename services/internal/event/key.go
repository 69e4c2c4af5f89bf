package event

import (
	"fmt"
	"strings"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
)

// GroupResource identifies a kind by its API group (empty for core) and its plural resource.
type GroupResource struct {
	Group, Resource string
	// Target marks objects that are published as targets of bindings, with their metadata only. The same kind may also
	// be published with its full objects, without this mark.
	Target bool
}

// String returns "resource.group", or "resource" in the core group. It appends " (target)" for targets.
func (r GroupResource) String() string {
	name := r.Resource
	if r.Group != "" {
		name += "." + r.Group
	}
	if r.Target {
		name += " (target)"
	}
	return name
}

// Key identifies one object in one cluster. Namespace is empty for cluster-scoped objects.
type Key struct {
	Cluster string
	GroupResource
	Namespace, Name string
}

// String returns a readable name such as "stores.core.platform-mesh.io/demo".
func (k Key) String() string {
	return k.GroupResource.String() + "/" + k.NamespacedName()
}

// NamespacedName returns "namespace/name", or "name" for a cluster-scoped object.
func (k Key) NamespacedName() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// KeyFromRef converts the wire format to a key.
func KeyFromRef(ref *eventv1.ObjectRef) Key {
	return Key{
		Cluster:       ref.GetCluster(),
		GroupResource: GroupResource{Group: ref.GetGroup(), Resource: ref.GetResource()},
		Namespace:     ref.GetNamespace(),
		Name:          ref.GetName(),
	}
}

// ToObjectRef converts k to the wire format.
func (k Key) ToObjectRef() *eventv1.ObjectRef {
	return &eventv1.ObjectRef{Cluster: k.Cluster, Group: k.Group, Resource: k.Resource, Namespace: k.Namespace, Name: k.Name}
}

// SubjectTokens returns k as the last tokens of a subject: cluster, group, resource, namespace, name. Different keys
// have different tokens, and no token is empty or contains a dot.
func (k Key) SubjectTokens() string {
	tokens := []string{k.Cluster, k.Group, k.Resource, k.Namespace, k.Name}
	for i, token := range tokens {
		tokens[i] = EncodeToken(token)
	}
	return strings.Join(tokens, ".")
}

// ParseSubjectTokens parses the output of [Key.SubjectTokens].
func ParseSubjectTokens(tail string) (Key, error) {
	tokens := strings.Split(tail, ".")
	if len(tokens) != 5 {
		return Key{}, fmt.Errorf("subject tail %.200q has %d tokens, not the 5 of cluster.group.resource.namespace.name", tail, len(tokens))
	}
	for i, token := range tokens {
		plain, err := DecodeToken(token)
		if err != nil {
			return Key{}, fmt.Errorf("subject tail %.200q: %w", tail, err)
		}
		tokens[i] = plain
	}
	k := Key{Cluster: tokens[0], GroupResource: GroupResource{Group: tokens[1], Resource: tokens[2]}, Namespace: tokens[3], Name: tokens[4]}
	if k.Cluster == "" || k.Resource == "" || k.Name == "" {
		return Key{}, fmt.Errorf("subject tail %.200q lacks a cluster, resource or name", tail)
	}
	return k, nil
}
