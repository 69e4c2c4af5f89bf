package module

import (
	"cmp"
	"strings"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Indexes of the tables.
const (
	byName     = "name"
	byStoreID  = "store id"
	byHolder   = "holder"
	byStoreRef = "store ref"
	byDocument = "document"
	byExport   = "export"
)

// State is what every door reads: the Stores, and the AuthorizationModels that refer to them.
type State struct {
	// Cluster is the one whose objects this service writes to.
	Cluster string
	Stores  *view.Table[corev1alpha1.Store]
	Models  *view.Table[corev1alpha1.AuthorizationModel]
}

// NewState registers the tables.
func NewState(v *view.View, cluster string) *State {
	return &State{
		Cluster: cluster,
		Stores: view.Register(v, kinds.Stores(), map[string]func(*corev1alpha1.Store) []string{
			byName:    func(s *corev1alpha1.Store) []string { return []string{s.Name} },
			byStoreID: func(s *corev1alpha1.Store) []string { return []string{s.Status.StoreID} },
			byHolder:  func(s *corev1alpha1.Store) []string { return []string{plan.ClaimHolder(s)} },
		}),
		Models: view.Register(v, kinds.AuthorizationModels(), map[string]func(*corev1alpha1.AuthorizationModel) []string{
			byStoreRef: func(m *corev1alpha1.AuthorizationModel) []string { return []string{m.Spec.StoreRef.Name} },
			byDocument: func(m *corev1alpha1.AuthorizationModel) []string {
				return []string{m.Annotations[corev1alpha1.DocumentAnnotation]}
			},
			byExport: func(m *corev1alpha1.AuthorizationModel) []string {
				return []string{m.Annotations[corev1alpha1.ExportAnnotation]}
			},
		}),
	}
}

// Model is an AuthorizationModel in the view.
type Model = view.Object[corev1alpha1.AuthorizationModel]

// Store is one in the view.
type Store = view.Object[corev1alpha1.Store]

// StoresNamed lists the Stores of a name, one for each cluster.
func (s *State) StoresNamed(name string) []Store { return s.Stores.By(byName, name) }

// StoresOf lists the Stores that have an OpenFGA store.
func (s *State) StoresOf(storeID string) []Store { return s.Stores.By(byStoreID, storeID) }

// StoresWaitingFor lists the Stores that say that a Store of this name has their OpenFGA store.
func (s *State) StoresWaitingFor(name string) []Store { return s.Stores.By(byHolder, name) }

// ModelsOf lists the AuthorizationModels that refer to a Store, whether or not it exists.
func (s *State) ModelsOf(store event.Key) []Model {
	var found []Model
	for _, m := range s.Models.By(byStoreRef, store.Name) {
		if StoreOf(m) == store {
			found = append(found, m)
		}
	}
	return found
}

// Statement says what a Store or an AuthorizationModel is now; false if it is not there.
func (s *State) Statement(k event.Key) (confirm.Statement, bool) {
	if o, ok := s.Stores.Get(k); ok {
		return StoreStatement(o), true
	}
	if o, ok := s.Models.Get(k); ok {
		return ModelStatement(o), true
	}
	return confirm.Statement{}, false
}

// Parts are statements on all that a Store's model is made of here: the Store, the AuthorizationModels that refer to
// it, and those that its status, or somebody else, names as part of the model and that do so no longer.
func (s *State) Parts(store Store, models []Model, named ...string) []confirm.Statement {
	statements, known := []confirm.Statement{StoreStatement(store)}, map[string]bool{}
	for _, m := range models {
		if m.Key.Cluster == store.Key.Cluster {
			statements, known[m.Key.Name] = append(statements, ModelStatement(m)), true
		}
	}
	if store.Value == nil {
		return statements
	}
	for _, was := range store.Value.Status.Modules {
		named = append(named, was.Source)
	}
	for _, source := range named {
		for _, o := range s.from(source) {
			switch {
			case known[o.Key.Name]:
				continue
			case o.UID != "" && !o.Deleted && StoreOf(o) == store.Key:
				statements = append(statements, confirm.Outdated(o.Change))
			default:
				statements = append(statements, ModelStatement(o))
			}
			known[o.Key.Name] = true
		}
	}
	return statements
}

// from lists the AuthorizationModels here that a module was from by the status of its Store, in their last states.
func (s *State) from(source string) []Model {
	kind, name, _ := strings.Cut(source, "/")
	switch kind {
	case model.AuthorizationModel.String():
		if strings.Contains(name, "/") {
			return nil // It was of another cluster, and counted when it did.
		}
		o, _ := s.Models.Last(s.ModelKey(name))
		o.Key = s.ModelKey(name)
		return []Model{o}
	case model.Policy.String():
		var found []Model
		for _, o := range append(s.Models.By(byDocument, name), s.Models.GoneBy(byDocument, name)...) {
			if last, _ := s.Models.Last(o.Key); o.Key.Cluster == s.Cluster { // Another may have its name by now.
				found = append(found, last)
			}
		}
		return found
	}
	return nil
}

// ModelsFor lists the AuthorizationModels that were made for an APIExport, as cluster/name.
func (s *State) ModelsFor(export string) []Model { return s.Models.By(byExport, export) }

// ModelKey is that of an AuthorizationModel here.
func (s *State) ModelKey(name string) event.Key {
	return event.Key{Cluster: s.Cluster, GroupResource: kinds.AuthorizationModels().GroupResource, Name: name}
}

// StoreOf is the Store that an AuthorizationModel refers to, whether or not it exists.
func StoreOf(m Model) event.Key {
	return StoreKey(m.Value.Spec.StoreRef.Name, cmp.Or(m.Value.Spec.StoreRef.Cluster, m.Key.Cluster))
}

// StoreKey is the key of a Store.
func StoreKey(name, cluster string) event.Key {
	return event.Key{Cluster: cluster, GroupResource: kinds.Stores().GroupResource, Name: name}
}
