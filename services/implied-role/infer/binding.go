package infer

import (
	"encoding/json"
	"iter"
	"slices"
	"unique"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Binding holds the fields of a RoleBinding that this service needs. It is small, because a service may hold half a
// million.
type Binding struct {
	Namespace, Name string
	UID             types.UID
	Role            Role
	Subjects        []rbacv1.Subject
	// Cluster marks a ClusterRoleBinding. It grants its role in every namespace and implies no other role.
	Cluster bool
	// Reserved marks a binding of this service. Its name has the form of [GeneratedName], and it lacks [IndependentLabel]. No
	// other label or annotation counts.
	Reserved bool
	// Source is the name of the binding that it was generated from, verified by computing the name of b from it. It is
	// empty for explicit bindings, and if neither the annotation nor an owner reference leads to b's name.
	Source string
	// Labelled means that the label claims that this service manages the binding. Any user can set that label.
	Labelled bool
	// Deleting means that deletion has begun. Finalized means that a finalizer can delay it.
	Deleting, Finalized bool
	// System means that the API server created the binding for itself.
	System bool
	// metadata is the fingerprint of the labels, annotations and owner reference of a generated binding.
	metadata fingerprint
}

// bindingJSON lists the fields of a RoleBinding that are decoded.
type bindingJSON struct {
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

// UnmarshalJSON decodes a RoleBinding or ClusterRoleBinding of the API server.
func (b *Binding) UnmarshalJSON(data []byte) error {
	var w bindingJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	m := &w.Metadata
	_, system := m.Labels[bootstrapping]
	*b = Binding{
		Namespace: internText(m.Namespace), Name: m.Name, UID: m.UID, Subjects: slices.Clone(w.Subjects),
		Role:     Role{Name: internText(w.RoleRef.Name), Cluster: w.RoleRef.Kind == KindClusterRole},
		Labelled: m.Labels[ManagedByLabel] == ManagedBy, System: system,
		Deleting: m.DeletionTimestamp != nil, Finalized: len(m.Finalizers) > 0,
	}
	for i := range b.Subjects {
		s := &b.Subjects[i]
		s.Kind, s.APIGroup, s.Namespace = internText(s.Kind), internText(s.APIGroup), internText(s.Namespace)
	}
	b.Cluster = m.Namespace == ""
	if b.Reserved = !b.Cluster && IsReserved(m.Name) && m.Labels[IndependentLabel] != independent; b.Reserved {
		b.Source = tracedSourceName(b, m.Annotations[SourceAnnotation], m.OwnerReferences)
		b.metadata = fingerprintMetadata(m.Labels, m.Annotations, sourceOwnerReference(b.Source, m.OwnerReferences))
	}
	return nil
}

// tracedSourceName returns the name of the binding from which [GeneratedName] derives the name of b. It tries the annotation first, then
// the owner references. It returns "" if none fits.
func tracedSourceName(b *Binding, annotation string, owners []metav1.OwnerReference) string {
	sources := []string{annotation}
	for _, o := range owners {
		sources = append(sources, o.Name)
	}
	if i := slices.IndexFunc(sources, func(source string) bool { return source != "" && b.Name == GeneratedName(source, b.Role) }); i >= 0 {
		return internText(sources[i])
	}
	return ""
}

// internText returns the interned text, so equal texts take memory once.
func internText(text string) string { return unique.Make(text).Value() }

// sourceOwnerReference returns the owner reference to the source, or an empty one.
func sourceOwnerReference(source string, owners []metav1.OwnerReference) metav1.OwnerReference {
	i := slices.IndexFunc(owners, func(o metav1.OwnerReference) bool {
		return o.Kind == kindRoleBinding && o.APIVersion == rbacv1.SchemeGroupVersion.String() && o.Name == source
	})
	if i < 0 {
		return metav1.OwnerReference{}
	}
	return owners[i]
}

// String returns the name, or "ClusterRoleBinding/name". Names contain no slash, so the result is unique.
func (b *Binding) String() string {
	if b.Cluster {
		return "ClusterRoleBinding/" + b.Name
	}
	return b.Name
}

// IsGenerated reports whether the binding belongs to this service. All others are explicit.
func (b *Binding) IsGenerated() bool { return b.Reserved }

// IsSource reports whether generated bindings can follow from the binding.
func (b *Binding) IsSource() bool {
	return !b.IsGenerated() && !b.Cluster && !b.Deleting && !b.System && len(b.Subjects) > 0
}

// CanOutliveDeletion reports whether the binding can keep granting its role for an unlimited time after its deletion begins.
// Kubernetes honours it until the last finalizer is gone.
func (b *Binding) CanOutliveDeletion() bool {
	return (b.Deleting || b.Finalized) && len(b.Subjects) > 0
}

// effectiveSubjects yields the subjects as Kubernetes reads them. A service account without a namespace gets that of the
// binding.
func (b *Binding) effectiveSubjects() iter.Seq[rbacv1.Subject] {
	return func(yield func(rbacv1.Subject) bool) {
		for _, s := range b.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "" {
				s.Namespace = b.Namespace
			}
			if !yield(s) {
				return
			}
		}
	}
}
