package store

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// State holds the informer's objects of Stores, and the providers of their models.
type State struct {
	// Shared holds the tables.
	Shared    *module.StoreListers
	providers []module.Provider
}

// NewState returns a state with these providers.
func NewState(shared *module.StoreListers, providers ...module.Provider) *State {
	return &State{Shared: shared, providers: providers}
}

// AddProviders adds providers, before the first use of the state. A provider may need the state for its construction.
func (s *State) AddProviders(providers ...module.Provider) {
	s.providers = append(s.providers, providers...)
}

// AffectedStores lists the Stores to reconcile after a Store or an AuthorizationModel changed. For an AuthorizationModel it is
// the Store that it extends. For a Store they are the Store itself, those that compete for its name or its OpenFGA
// store, and those that wait for it.
func (s *State) AffectedStores(k event.Key) []event.Key {
	switch k.GroupResource {
	case kinds.Stores().GroupResource:
		return s.storesAffectedByStore(k)
	case kinds.AuthorizationModels().GroupResource:
		return s.storesAffectedByModel(k)
	}
	return nil
}

func (s *State) storesAffectedByModel(k event.Key) []event.Key {
	var keys []event.Key
	if m, live := s.Shared.Models.Get(k); live {
		keys = append(keys, module.ReferencedStoreKey(m))
	}
	for _, m := range s.Shared.Models.Tombstones(k) {
		if m.Value != nil {
			keys = append(keys, module.ReferencedStoreKey(m))
		}
	}
	return keys
}

func (s *State) storesAffectedByStore(k event.Key) []event.Key {
	var keys []event.Key
	here := func(m module.ModelObject) bool { return m.Key.Cluster == s.Shared.Cluster }
	if k.Cluster == s.Shared.Cluster || slices.ContainsFunc(s.Shared.ModelsOfStore(k), here) {
		keys = append(keys, k)
	}
	o, _ := s.Shared.Stores.Get(k)
	for _, r := range s.competingStores(k, o.Value) {
		if r.Key.Cluster == s.Shared.Cluster {
			keys = append(keys, r.Key)
		}
	}
	for _, waiting := range s.Shared.StoresWaitingFor(k.Name) {
		if waiting.Key.Cluster == s.Shared.Cluster && !slices.Contains(keys, waiting.Key) {
			keys = append(keys, waiting.Key)
		}
	}
	return keys
}

// Snapshot collects the state of one Store from the informer. The owner of a Store of another cluster is that cluster's
// store-sync.
func (s *State) Snapshot(key event.Key, obs plan.Observed) plan.Input {
	in := plan.Input{Key: key}
	o, live := s.Shared.Stores.Get(key)
	switch {
	case live && key.Cluster != s.Shared.Cluster:
		in.Elsewhere = o.Value
	case live:
		in.Store, in.Change = o.Value, o.Change
		for _, o := range s.Shared.Stores.Tombstones(key) {
			if o.Value != nil {
				in.Earlier = append(in.Earlier, o.Value)
			}
		}
		in.Provided = s.providedModules(key)
	case key.Cluster == s.Shared.Cluster:
		for _, o := range s.Shared.Stores.Tombstones(key) {
			switch {
			case o.Value == nil:
			case in.Gone == nil:
				in.Gone, in.Change = o.Value, o.Change
			default:
				in.Earlier = append(in.Earlier, o.Value)
			}
		}
	}
	for _, m := range s.Shared.ModelsOfStore(key) {
		in.Modules = append(in.Modules, plan.ModelObject{Change: m.Change, Value: m.Value})
	}
	ids := make([]string, 0, len(obs.Named)+len(in.Earlier))
	for _, named := range obs.Named {
		ids = append(ids, named.ID)
	}
	for _, o := range in.Earlier {
		ids = append(ids, o.Status.StoreID)
	}
	in.Rivals = s.competingStores(key, cmp.Or(in.Store, in.Gone), ids...)
	return in
}

// providedModules returns the modules that providers give directly.
func (s *State) providedModules(store event.Key) (modules []model.Module) {
	for _, p := range s.providers {
		m, _ := p.DirectModules(store)
		modules = append(modules, m...)
	}
	return modules
}

// MergeAfterPlanFunc returns a function that merges the modules of a live Store as they are once a plan is carried out. It returns
// false for any other Store, and if the merge fails.
func (s *State) MergeAfterPlanFunc(merges *MergeCache) func(store event.Key, todo moduleplan.Plan) (model.MergeResult, model.Limits, bool) {
	return func(store event.Key, todo moduleplan.Plan) (model.MergeResult, model.Limits, bool) {
		in := s.Snapshot(store, plan.Observed{})
		if in.Store == nil {
			return model.MergeResult{}, merges.limits, false
		}
		merged, err := merges.Merge(in.AfterPlan(todo, metav1.Now()))
		return merged, merges.limits, err == nil
	}
}

// competingStores returns the other Stores with the same name, with the same OpenFGA store, or with one of ids.
func (s *State) competingStores(k event.Key, o *corev1alpha1.Store, ids ...string) []plan.CompetingStore {
	found := s.Shared.StoresByName(k.Name)
	if o != nil {
		ids = append(ids, o.Status.StoreID)
	}
	for _, id := range ids {
		found = append(found, s.Shared.StoresRecording(id)...)
	}
	var rivals []plan.CompetingStore
	for _, r := range found {
		known := slices.ContainsFunc(rivals, func(other plan.CompetingStore) bool { return other.Key == r.Key })
		if r.Key != k && !known {
			rivals = append(rivals, plan.CompetingStore{Change: r.Change, Value: r.Value})
		}
	}
	return rivals
}
