package plan

import (
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// Wanted is an AuthorizationModel that an API asks for.
type Wanted struct {
	Resource Resource
	Store    corev1alpha1.StoreRef
	// Export is the APIExport that offers the resource, as cluster/name; empty for a CustomResourceDefinition.
	Export string
}

// OfDefinition is what a CustomResourceDefinition asks for: a module in the Store of its label, if it has one.
func OfDefinition(d *Definition) (Wanted, bool) {
	store := d.Labels[corev1alpha1.StoreNameLabel]
	return Wanted{Resource: d.Spec.Resource(), Store: corev1alpha1.StoreRef{Name: store}}, store != ""
}

// Bound is an APIBinding with all that it leads to. What is not known is nil.
type Bound struct {
	Binding *Binding
	Account *corev1alpha1.AccountInfo
	Export  *Export
	// Schemas are the known ones of the export, by name.
	Schemas map[string]*Schema
}

// OfBinding is what an APIBinding asks for: a module for each resource of the export, in the Store of its organization.
// It is not all unless everything that the binding leads to is known.
func OfBinding(b Bound) (wanted []Wanted, all bool) {
	if b.Binding.Ignored() || b.Binding.DeletionTimestamp != nil {
		return nil, true
	}
	if b.Account == nil || b.Export == nil {
		return nil, false
	}
	org := b.Account.Spec.Organization
	names := b.Export.Schemas()
	for _, name := range names {
		if schema := b.Schemas[name]; schema != nil {
			wanted = append(wanted, Wanted{
				Resource: schema.Spec.Resource(), Export: b.Binding.Status.ExportCluster + "/" + b.Export.Name,
				Store: corev1alpha1.StoreRef{Name: org.Name, Cluster: org.OriginCluster},
			})
		}
	}
	return wanted, len(wanted) == len(names)
}

// Discovers reports whether the Store wants to know the API server's own resources.
func Discovers(s *corev1alpha1.Store) bool {
	return s.Name != platformStore && s.Spec.Discovery != corev1alpha1.DiscoveryNone
}

// platformStore is the Store above those of organizations, which are all that it knows.
const platformStore = "orgs"
