package storesync

import (
	"cmp"
	"slices"
	"strings"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/store-sync/apimodule/discovery"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// Indexes of the tables.
const (
	byName     = "name"
	byStoreID  = "store id"
	byStoreRef = "store ref"
)

// objects finds what belongs together in the view.
type objects struct {
	apis

	// cluster is the one whose objects this service writes to.
	cluster   string
	stores    *view.Table[corev1alpha1.Store]
	modules   *view.Table[corev1alpha1.AuthorizationModel]
	documents *view.Table[iaplv1alpha1.PolicyDocument]
	discovery *discovery.Discovery
}

func newObjects(v *view.View, cluster string, cfg discovery.Config, api discovery.API) objects {
	a := newAPIs(v, cluster)
	return objects{
		apis: a, cluster: cluster, discovery: discovery.New(cfg, api, a),
		stores: view.Register(v, kinds.Stores(), map[string]func(*corev1alpha1.Store) []string{
			byName:    func(s *corev1alpha1.Store) []string { return []string{s.Name} },
			byStoreID: func(s *corev1alpha1.Store) []string { return []string{s.Status.StoreID} },
		}),
		modules: view.Register(v, kinds.AuthorizationModels(), map[string]func(*corev1alpha1.AuthorizationModel) []string{
			byStoreRef: func(m *corev1alpha1.AuthorizationModel) []string { return []string{m.Spec.StoreRef.Name} },
			byExport: func(m *corev1alpha1.AuthorizationModel) []string {
				return []string{m.Annotations[corev1alpha1.ExportAnnotation]}
			},
		}),
		documents: view.Register(v, kinds.PolicyDocuments(), map[string]func(*iaplv1alpha1.PolicyDocument) []string{
			byStoreRef: func(d *iaplv1alpha1.PolicyDocument) []string { return []string{d.Spec.StoreRef.Name} },
		}),
	}
}

// Keys lists the Stores to look at when an object changed: a Store itself with those that its
// name or its OpenFGA store may be refused to, the Store that an AuthorizationModel extends or
// a PolicyDocument registers with, or those whose models an API belongs into.
func (o objects) Keys(k event.Key) []event.Key {
	switch k.GroupResource {
	case kinds.Stores().GroupResource:
		return o.storeKeys(k)
	case kinds.AuthorizationModels().GroupResource:
		if m := last(o.modules, k); m != nil {
			return []event.Key{storeOf(k, m)}
		}
		return nil
	case kinds.PolicyDocuments().GroupResource:
		if d := last(o.documents, k); d != nil {
			return []event.Key{o.store(d.Spec.StoreRef.Name, cmp.Or(d.Spec.StoreRef.Cluster, k.Cluster))}
		}
		return nil
	case kinds.Definitions().GroupResource:
		return append(o.keys(k), o.discovering(k)...)
	default:
		return o.keys(k)
	}
}

// discovering lists the Stores whose models speak of all resources in the group of a definition.
func (o objects) discovering(definition event.Key) []event.Key {
	var keys []event.Key
	if definition.Cluster == o.cluster && o.discovery.Concerns(groupOf(definition)) {
		for _, s := range o.stores.All() {
			if s.Key.Cluster == o.cluster && plan.Discovers(s.Value) {
				keys = append(keys, s.Key)
			}
		}
	}
	return keys
}

// groupOf reads it from the definition's name, which is <plural>.<group>.
func groupOf(definition event.Key) string {
	_, group, _ := strings.Cut(definition.Name, ".")
	return group
}

func (o objects) storeKeys(k event.Key) []event.Key {
	var keys []event.Key
	here := func(m view.Object[corev1alpha1.AuthorizationModel]) bool {
		return m.Key.Cluster == o.cluster && storeOf(m.Key, m.Value) == k
	}
	if k.Cluster == o.cluster || slices.ContainsFunc(o.modules.By(byStoreRef, k.Name), here) {
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
		GroupResource: kinds.Stores().GroupResource,
		Cluster:       cmp.Or(m.Spec.StoreRef.Cluster, k.Cluster), Name: m.Spec.StoreRef.Name,
	}
}

// input gathers what the view holds about one Store. A Store of another cluster is none of ours.
func (o objects) input(key event.Key, f plan.Observed) plan.Input {
	in := plan.Input{Key: key}
	if s, ok := o.stores.Get(key); ok && key.Cluster != o.cluster {
		in.Elsewhere = s.Value
	}
	if key.Cluster == o.cluster {
		if s, ok := o.stores.Get(key); ok {
			in.Store, in.Change = s.Value, s.Change
			if plan.Discovers(s.Value) {
				in.Discovered, _ = o.discovery.Modules()
				in.AccountType = o.discovery.AccountType()
			}
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
