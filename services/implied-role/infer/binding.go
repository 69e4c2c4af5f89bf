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

// Binding is a RoleBinding, as much of it as matters here, in little memory: a service
// may have to hold half a million of them.
type Binding struct {
	Namespace, Name string
	UID             types.UID
	Role            Role
	Subjects        []rbacv1.Subject
	// Cluster means that it is a ClusterRoleBinding: it grants in every namespace, and implies nothing.
	Cluster bool
	// Reserved means that it is ours: its name has the form of those that this service gives, and
	// nobody who may has made it independent. What else it bears makes no difference.
	Reserved bool
	// Source is the name of the binding that it was generated from, of which its own name is
	// recomputed; empty if people made it, or if nothing tells any more.
	Source string
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
	b.Cluster = m.Namespace == ""
	if b.Reserved = !b.Cluster && IsReserved(m.Name) && m.Labels[IndependentLabel] != independent; b.Reserved {
		b.Source = source(b, m.Annotations[SourceAnnotation], m.OwnerReferences)
		b.metadata = metadataOf(m.Labels, m.Annotations, owner(b.Source, m.OwnerReferences))
	}
	return nil
}

// source finds the one whose generated binding would have the name of b.
func source(b *Binding, annotation string, owners []metav1.OwnerReference) string {
	sources := []string{annotation}
	for _, o := range owners {
		sources = append(sources, o.Name)
	}
	if i := slices.IndexFunc(sources, func(source string) bool { return source != "" && b.Name == Name(source, b.Role) }); i >= 0 {
		return shared(sources[i])
	}
	return ""
}

// shared is text held once, however many have it.
func shared(text string) string { return unique.Make(text).Value() }

// owner finds the reference to a source.
func owner(source string, owners []metav1.OwnerReference) metav1.OwnerReference {
	i := slices.IndexFunc(owners, func(o metav1.OwnerReference) bool {
		return o.Kind == kindRoleBinding && o.APIVersion == rbacv1.SchemeGroupVersion.String() && o.Name == source
	})
	if i < 0 {
		return metav1.OwnerReference{}
	}
	return owners[i]
}

// String is its name, or "ClusterRoleBinding/name": no name holds a slash.
func (b *Binding) String() string {
	if b.Cluster {
		return "ClusterRoleBinding/" + b.Name
	}
	return b.Name
}

// Generated reports whether the binding is this service's. Others are people's.
func (b *Binding) Generated() bool { return b.Reserved }

// IsSource reports whether others follow from the binding.
func (b *Binding) IsSource() bool {
	return !b.Generated() && !b.Cluster && !b.Deleting && !b.System && len(b.Subjects) > 0
}

// Delayed reports whether the binding goes on granting for who knows how long when it is deleted:
// Kubernetes honours it until the last finalizer has gone.
func (b *Binding) Delayed() bool { return (b.Deleting || b.Finalized) && len(b.Subjects) > 0 }

// subjects are those of the binding as Kubernetes reads them: a service account without a namespace
// is one of the binding's.
func (b *Binding) subjects() iter.Seq[rbacv1.Subject] {
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
