package module

import (
	"cmp"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/store-sync/module/plan"
)

// These are the indexes of the tables.
const (
	byName     = "name"
	byStoreID  = "store id"
	byHolder   = "holder"
	byStoreRef = "store ref"
	byExport   = "export"
)

// StoreListers holds the tables that every provider reads: the Stores, and the AuthorizationModels that refer to them.
type StoreListers struct {
	// Cluster is the cluster to which this service writes.
	Cluster string
	Stores  *informer.Lister[corev1alpha1.Store]
	Models  *informer.Lister[corev1alpha1.AuthorizationModel]
}

// NewStoreListers registers the tables in the informer.
func NewStoreListers(v *informer.Informer, cluster string) *StoreListers {
	return &StoreListers{
		Cluster: cluster,
		Stores: informer.RegisterLister(v, kinds.Stores(), map[string]func(*corev1alpha1.Store) []string{
			byName:    func(s *corev1alpha1.Store) []string { return []string{s.Name} },
			byStoreID: func(s *corev1alpha1.Store) []string { return []string{s.Status.StoreID} },
			byHolder:  func(s *corev1alpha1.Store) []string { return []string{plan.ClaimHolderName(s)} },
		}),
		Models: informer.RegisterLister(v, kinds.AuthorizationModels(), map[string]func(*corev1alpha1.AuthorizationModel) []string{
			byStoreRef: func(m *corev1alpha1.AuthorizationModel) []string { return []string{m.Spec.StoreRef.Name} },
			byExport: func(m *corev1alpha1.AuthorizationModel) []string {
				return []string{m.Annotations[corev1alpha1.ExportAnnotation]}
			},
		}),
	}
}

// ModelObject is an AuthorizationModel in the informer.
type ModelObject = informer.Object[corev1alpha1.AuthorizationModel]

// StoreObject is a Store in the informer.
type StoreObject = informer.Object[corev1alpha1.Store]

// StoresByName lists the Stores with a name, one for each cluster.
func (s *StoreListers) StoresByName(name string) []StoreObject {
	return s.Stores.ListByIndex(byName, name)
}

// StoresRecording lists the Stores that record an OpenFGA store.
func (s *StoreListers) StoresRecording(storeID string) []StoreObject {
	return s.Stores.ListByIndex(byStoreID, storeID)
}

// StoresWaitingFor lists the Stores whose condition names a Store with this name as the holder of their OpenFGA store.
func (s *StoreListers) StoresWaitingFor(name string) []StoreObject {
	return s.Stores.ListByIndex(byHolder, name)
}

// ModelsOfStore lists the AuthorizationModels that refer to a Store, even if it does not exist.
func (s *StoreListers) ModelsOfStore(store event.Key) []ModelObject {
	var found []ModelObject
	for _, m := range s.Models.ListByIndex(byStoreRef, store.Name) {
		if ReferencedStoreKey(m) == store {
			found = append(found, m)
		}
	}
	return found
}

// ExpectedObject returns the present state of a Store or an AuthorizationModel, and false if it does not exist.
func (s *StoreListers) ExpectedObject(k event.Key) (verify.ExpectedState, bool) {
	if o, ok := s.Stores.Get(k); ok {
		return ExpectedStore(o), true
	}
	if o, ok := s.Models.Get(k); ok {
		return ExpectedModel(o), true
	}
	return verify.ExpectedState{}, false
}

// ModelsGeneratedFor lists the AuthorizationModels that were generated for an APIExport, given as cluster/name.
func (s *StoreListers) ModelsGeneratedFor(export string) []ModelObject {
	return s.Models.ListByIndex(byExport, export)
}

// ModelKey returns the key of an AuthorizationModel of this cluster.
func (s *StoreListers) ModelKey(name string) event.Key {
	return event.Key{Cluster: s.Cluster, GroupResource: kinds.AuthorizationModels().GroupResource, Name: name}
}

// ReferencedStoreKey returns the key of the Store to which an AuthorizationModel refers, even if that does not exist.
func ReferencedStoreKey(m ModelObject) event.Key {
	return StoreKey(m.Value.Spec.StoreRef.Name, cmp.Or(m.Value.Spec.StoreRef.Cluster, m.Key.Cluster))
}

// StoreKey is the key of a Store.
func StoreKey(name, cluster string) event.Key {
	return event.Key{Cluster: cluster, GroupResource: kinds.Stores().GroupResource, Name: name}
}
