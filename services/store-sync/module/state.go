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

// State holds the tables that every provider reads: the Stores, and the AuthorizationModels that refer to them.
type State struct {
	// Cluster is the cluster to which this service writes.
	Cluster string
	Stores  *informer.Lister[corev1alpha1.Store]
	Models  *informer.Lister[corev1alpha1.AuthorizationModel]
}

// NewState registers the tables in the view.
func NewState(v *informer.Informer, cluster string) *State {
	return &State{
		Cluster: cluster,
		Stores: informer.Register(v, kinds.Stores(), map[string]func(*corev1alpha1.Store) []string{
			byName:    func(s *corev1alpha1.Store) []string { return []string{s.Name} },
			byStoreID: func(s *corev1alpha1.Store) []string { return []string{s.Status.StoreID} },
			byHolder:  func(s *corev1alpha1.Store) []string { return []string{plan.ClaimHolder(s)} },
		}),
		Models: informer.Register(v, kinds.AuthorizationModels(), map[string]func(*corev1alpha1.AuthorizationModel) []string{
			byStoreRef: func(m *corev1alpha1.AuthorizationModel) []string { return []string{m.Spec.StoreRef.Name} },
			byExport: func(m *corev1alpha1.AuthorizationModel) []string {
				return []string{m.Annotations[corev1alpha1.ExportAnnotation]}
			},
		}),
	}
}

// Model is an AuthorizationModel in the view.
type Model = informer.Object[corev1alpha1.AuthorizationModel]

// Store is a Store in the view.
type Store = informer.Object[corev1alpha1.Store]

// StoresNamed lists the Stores with a name, one for each cluster.
func (s *State) StoresNamed(name string) []Store { return s.Stores.By(byName, name) }

// StoresOf lists the Stores that record an OpenFGA store.
func (s *State) StoresOf(storeID string) []Store { return s.Stores.By(byStoreID, storeID) }

// StoresWaitingFor lists the Stores whose condition names a Store with this name as the holder of their OpenFGA store.
func (s *State) StoresWaitingFor(name string) []Store { return s.Stores.By(byHolder, name) }

// ModelsOf lists the AuthorizationModels that refer to a Store, even if it does not exist.
func (s *State) ModelsOf(store event.Key) []Model {
	var found []Model
	for _, m := range s.Models.By(byStoreRef, store.Name) {
		if StoreOf(m) == store {
			found = append(found, m)
		}
	}
	return found
}

// Expected returns the present state of a Store or an AuthorizationModel, and false if it does not exist.
func (s *State) Expected(k event.Key) (verify.Expected, bool) {
	if o, ok := s.Stores.Get(k); ok {
		return ExpectStore(o), true
	}
	if o, ok := s.Models.Get(k); ok {
		return ExpectModel(o), true
	}
	return verify.Expected{}, false
}

// ModelsFor lists the AuthorizationModels that were generated for an APIExport, given as cluster/name.
func (s *State) ModelsFor(export string) []Model { return s.Models.By(byExport, export) }

// ModelKey returns the key of an AuthorizationModel of this cluster.
func (s *State) ModelKey(name string) event.Key {
	return event.Key{Cluster: s.Cluster, GroupResource: kinds.AuthorizationModels().GroupResource, Name: name}
}

// StoreOf returns the key of the Store to which an AuthorizationModel refers, even if that does not exist.
func StoreOf(m Model) event.Key {
	return StoreKey(m.Value.Spec.StoreRef.Name, cmp.Or(m.Value.Spec.StoreRef.Cluster, m.Key.Cluster))
}

// StoreKey is the key of a Store.
func StoreKey(name, cluster string) event.Key {
	return event.Key{Cluster: cluster, GroupResource: kinds.Stores().GroupResource, Name: name}
}
