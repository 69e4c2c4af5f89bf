package infer

import (
	"encoding/json"
	"slices"
	"strings"
	"unique"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Binding is a RoleBinding, as much of it as matters here, in little memory: a service
// may have to hold half a million of them.
type Binding struct {
	Namespace, Name string
	UID             types.UID
	Role            Role
	Subjects        []rbacv1.Subject
	// Source is the name of the binding that it was generated from; empty if people made it.
	Source string
	// Former is the name of the source that it was, or could have been, generated from, if
	// it is somebody else's now: it has the name, and an annotation or an owner still says so.
	Former string
	// Labelled means that it claims to be generated, as anybody can.
	Labelled bool
	// Deleting means that its deletion has begun, Finalized that something may hold that up.
	Deleting, Finalized bool
	// System means that the API server made it for itself.
	System bool
	// metadata is a fingerprint of what generated bindings bear.
	metadata fingerprint
}

// wire is the part of a RoleBinding that is read.
type wire struct {
	Metadata struct {
		Namespace         string                  `json:"namespace"`
		Name              string                  `json:"name"`
		UID               types.UID               `json:"uid"`
		Labels            map[string]string       `json:"labels"`
		Annotations       map[string]string       `json:"annotations"`
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
		Finalizers        []string                `json:"finalizers"`
		DeletionTimestamp *string                 `json:"deletionTimestamp"`
	} `json:"metadata"`
	RoleRef  rbacv1.RoleRef   `json:"roleRef"`
	Subjects []rbacv1.Subject `json:"subjects"`
}

// UnmarshalJSON reads a RoleBinding as the API server sends it.
func (b *Binding) UnmarshalJSON(data []byte) error {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	m := &w.Metadata
	_, system := m.Labels[bootstrapping]
	*b = Binding{
		Namespace: shared(m.Namespace), Name: m.Name, UID: m.UID, Subjects: slices.Clone(w.Subjects),
		Role:     Role{Name: shared(w.RoleRef.Name), Cluster: w.RoleRef.Kind == KindClusterRole},
		Labelled: m.Labels[ManagedByLabel] == ManagedBy, System: system,
		Deleting: m.DeletionTimestamp != nil, Finalized: len(m.Finalizers) > 0,
	}
	for i := range b.Subjects {
		s := &b.Subjects[i]
		s.Kind, s.APIGroup, s.Namespace = shared(s.Kind), shared(s.APIGroup), shared(s.Namespace)
	}
	if owner, ours := owner(b, m.OwnerReferences); ours {
		b.Source = shared(owner.Name)
		b.metadata = metadataOf(m.Labels, m.Annotations, owner)
	} else {
		b.Former = former(b, m.Annotations[SourceAnnotation], m.OwnerReferences)
	}
	return nil
}

// former finds the source whose generated binding would have the name of b.
func former(b *Binding, annotation string, owners []metav1.OwnerReference) string {
	if !strings.HasPrefix(b.Name, prefix) {
		return ""
	}
	sources := []string{annotation}
	for _, o := range owners {
		sources = append(sources, o.Name)
	}
	if i := slices.IndexFunc(sources, func(source string) bool { return b.Name == Name(source, b.Role) }); i >= 0 {
		return shared(sources[i])
	}
	return ""
}

// shared is text held once, however many have it.
func shared(text string) string { return unique.Make(text).Value() }

// owner finds the source that owns a binding which this service generated: it bears our
// label, a source owns it, and its name is the one we would give it.
func owner(b *Binding, owners []metav1.OwnerReference) (metav1.OwnerReference, bool) {
	if !b.Labelled {
		return metav1.OwnerReference{}, false
	}
	i := slices.IndexFunc(owners, func(o metav1.OwnerReference) bool {
		return o.Kind == kindRoleBinding && o.APIVersion == rbacv1.SchemeGroupVersion.String() && b.Name == Name(o.Name, b.Role)
	})
	if i < 0 {
		return metav1.OwnerReference{}, false
	}
	return owners[i], true
}

// Generated reports whether this service made the binding.
func (b *Binding) Generated() bool { return b.Source != "" }

// Grants reports whether people made the binding, and it is not being deleted. Generated
// ones follow from these.
func (b *Binding) Grants() bool { return !b.Generated() && !b.Deleting }

// IsSource reports whether others follow from the binding.
func (b *Binding) IsSource() bool { return b.Grants() && !b.System && len(b.Subjects) > 0 }
