package plan

import (
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// WantedModel describes an AuthorizationModel that an API needs.
type WantedModel struct {
	Resource APIResource
	Store    corev1alpha1.StoreRef
	// Export is the APIExport that offers the resource, as cluster/name. It is empty for a CustomResourceDefinition.
	Export string
}

// ModelWantedByDefinition returns the module that a CustomResourceDefinition needs in the Store of its label. It returns false
// without that label.
func ModelWantedByDefinition(d *ResourceDefinition) (WantedModel, bool) {
	store := d.Labels[corev1alpha1.StoreNameLabel]
	return WantedModel{Resource: d.Spec.Resource(), Store: corev1alpha1.StoreRef{Name: store}}, store != ""
}

// ResolvedBinding holds an APIBinding with the objects that it leads to. Unknown objects are nil.
type ResolvedBinding struct {
	Binding *APIBinding
	Account *corev1alpha1.AccountInfo
	Export  *APIExport
	// Schemas holds the known schemas of the export by name.
	Schemas map[string]*ResourceSchema
}

// ModelsWantedByBinding returns the modules that an APIBinding needs: one for each resource of the export, in the Store of its
// organization. It reports in all whether the list is complete, which needs every object that the binding leads to.
func ModelsWantedByBinding(b ResolvedBinding) (wanted []WantedModel, all bool) {
	if b.Binding.IsPlatformBinding() || b.Binding.DeletionTimestamp != nil {
		return nil, true
	}
	if b.Account == nil || b.Export == nil {
		return nil, false
	}
	org := b.Account.Spec.Organization
	names := b.Export.SchemaNames()
	for _, name := range names {
		if schema := b.Schemas[name]; schema != nil {
			wanted = append(wanted, WantedModel{
				Resource: schema.Spec.Resource(), Export: b.Binding.Status.ExportCluster + "/" + b.Export.Name,
				Store: corev1alpha1.StoreRef{Name: org.Name, Cluster: org.OriginCluster},
			})
		}
	}
	return wanted, len(wanted) == len(names)
}

// UsesDiscovery reports whether the model of the Store contains the API server's own resources.
func UsesDiscovery(s *corev1alpha1.Store) bool {
	return s.Name != platformStore && s.Spec.Discovery != corev1alpha1.DiscoveryNone
}

// platformStore is the Store above those of organizations. Its model contains only organizations.
const platformStore = "orgs"
