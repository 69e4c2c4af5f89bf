package storesync

import (
	"cmp"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/store-sync/plan"
)

// Indexes of the tables.
const (
	byName     = "name"
	byStoreID  = "store id"
	byStoreRef = "store ref"
)

// objects finds what belongs together in the view.
type objects struct {
	// cluster is the one whose objects this service writes to.
	cluster string
	stores  *view.Table[corev1alpha1.Store]
	modules *view.Table[corev1alpha1.AuthorizationModel]
}

func newObjects(v *view.View, cluster string) objects {
	return objects{
		cluster: cluster,
		stores: view.Register(v, topology.Stores(), map[string]func(*corev1alpha1.Store) []string{
			byName:    func(s *corev1alpha1.Store) []string { return []string{s.Name} },
			byStoreID: func(s *corev1alpha1.Store) []string { return []string{s.Status.StoreID} },
		}),
		modules: view.Register(v, topology.AuthorizationModels(), map[string]func(*corev1alpha1.AuthorizationModel) []string{
			byStoreRef: func(m *corev1alpha1.AuthorizationModel) []string { return []string{m.Spec.StoreRef.Name} },
		}),
	}
}

// Keys lists the Stores to look at when an object changed: a Store itself with those that its
// name or its OpenFGA store may be refused to, or the Store that an AuthorizationModel extends.
func (o objects) Keys(k event.Key) []event.Key {
	if k.GroupResource == topology.AuthorizationModels().GroupResource {
		m, ok := o.modules.Get(k)
		if !ok {
			m, _ = o.modules.Tombstone(k)
		}
		if m.Value == nil {
			return nil
		}
		return []event.Key{storeOf(k, m.Value)}
	}
	var keys []event.Key
	if k.Cluster == o.cluster {
		keys = append(keys, k)
	}
	s, _ := o.stores.Get(k)
	for _, r := range o.rivals(k, s.Value) {
		if r.Key.Cluster == o.cluster {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// storeOf is the Store that an AuthorizationModel refers to, whether or not it exists.
func storeOf(k event.Key, m *corev1alpha1.AuthorizationModel) event.Key {
	return event.Key{
		GroupResource: topology.Stores().GroupResource,
		Cluster:       cmp.Or(m.Spec.StoreRef.Cluster, k.Cluster), Name: m.Spec.StoreRef.Name,
	}
}

// input gathers what the view holds about one Store. A Store of another cluster is none of ours.
func (o objects) input(key event.Key, f plan.Facts) plan.Input {
	in := plan.Input{Key: key}
	if key.Cluster == o.cluster {
		if s, ok := o.stores.Get(key); ok {
			in.Store, in.Change = s.Value, s.Change
		} else if s, ok := o.stores.Tombstone(key); ok {
			in.Gone, in.Change = s.Value, s.Change
		}
	}
	for _, m := range o.modules.By(byStoreRef, key.Name) {
		if storeOf(m.Key, m.Value) == key {
			in.Modules = append(in.Modules, plan.Module{Change: m.Change, Value: m.Value})
		}
	}
	ids := make([]string, len(f.Named))
	for i, s := range f.Named {
		ids[i] = s.ID
	}
	in.Rivals = o.rivals(key, cmp.Or(in.Store, in.Gone), ids...)
	return in
}

// rivals are the other Stores that have the same name, the same OpenFGA store, or one of those in ids.
func (o objects) rivals(k event.Key, s *corev1alpha1.Store, ids ...string) []plan.Rival {
	found := o.stores.By(byName, k.Name)
	if s != nil {
		ids = append(ids, s.Status.StoreID)
	}
	for _, id := range ids {
		if id != "" {
			found = append(found, o.stores.By(byStoreID, id)...)
		}
	}
	var rivals []plan.Rival
	for _, r := range found {
		known := slices.ContainsFunc(rivals, func(other plan.Rival) bool { return other.Key == r.Key })
		if r.Key != k && !known {
			rivals = append(rivals, plan.Rival{Change: r.Change, Value: r.Value})
		}
	}
	return rivals
}
