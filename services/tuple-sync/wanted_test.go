package tuplesync

import (
	"slices"
	"strings"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// wanted is the specification: it computes the content of a store from the objects alone.
func (w *simulatedServers) wanted(storeID string) map[tuple.ID]tuple.Tuple {
	return w.wantedBy(storeID, func(*simulatedObject) bool { return true })
}

func (w *simulatedServers) wantedBy(storeID string, who func(*simulatedObject) bool) map[tuple.ID]tuple.Tuple {
	var owners []*simulatedObject
	for _, a := range w.things {
		if who(a) && w.home(a) == storeID && (a.meta.DeletionTimestamp == nil || a.isStore() && len(w.dependents(a)) > 0) {
			owners = append(owners, a)
		}
	}
	slices.SortFunc(owners, func(a, b *simulatedObject) int {
		if a.isStore() != b.isStore() {
			return map[bool]int{true: -1, false: 1}[a.isStore()]
		}
		if c := a.meta.CreationTimestamp.Compare(b.meta.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.meta.Name, b.meta.Name)
	})
	wanted, recorded := map[tuple.ID]tuple.Tuple{}, map[tuple.ID]bool{}
	for _, a := range owners {
		first, record := map[tuple.ID]bool{}, a.record()
		for _, t := range tuple.ParseDeclaredList(a.tuples) {
			late := a.meta.DeletionTimestamp != nil && !slices.Contains(a.meta.Finalizers, corev1alpha1.TuplesFinalizer)
			has := record.StoreID == storeID && slices.Contains(record.Tuples, t)
			if !first[t.ID] && w.allows(storeID, t) && (!late || has) {
				if _, ok := wanted[t.ID]; !ok || has && !recorded[t.ID] { // The Store wins, then the object that has recorded it, then the older one.
					wanted[t.ID], recorded[t.ID] = t, has || a.isStore()
				}
			}
			first[t.ID] = true
		}
	}
	return wanted
}

func (w *simulatedServers) home(a *simulatedObject) string {
	if a.isStore() {
		return a.status.StoreID
	}
	if s := w.storeOf(a); s != nil {
		return s.status.StoreID
	}
	return ""
}

func (w *simulatedServers) storeOf(model *simulatedObject) *simulatedObject {
	return w.things[event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: model.ref}]
}

func (w *simulatedServers) dependents(store *simulatedObject) []*simulatedObject {
	var found []*simulatedObject
	for _, a := range w.things {
		if !a.isStore() && a.ref == store.meta.Name {
			found = append(found, a)
		}
	}
	return found
}

func (w *simulatedServers) claimed(storeID string) bool {
	for _, a := range w.things {
		if a.isStore() && a.status.StoreID == storeID {
			return true
		}
	}
	return false
}

func (w *simulatedServers) allows(storeID string, t tuple.Tuple) bool {
	for _, a := range w.things {
		if a.isStore() && a.status.StoreID == storeID {
			return t.User != "nobody" && (a.status.AuthorizationModelID == "big" || t.Relation == "viewer")
		}
	}
	return false
}
