package declared

import (
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Key is the unit of reconciliation: an OpenFGA store with all its owners, or an object without a store.
type Key struct {
	StoreID string
	Owner   event.Key
}

// String returns a description for logs.
func (k Key) String() string {
	if k.StoreID != "" {
		return "OpenFGA store " + k.StoreID
	}
	return k.Owner.String()
}

// Keys returns the keys that depend on an object: the store of its record and the store that it belongs to. A Store
// without an OpenFGA store also affects its AuthorizationModels. An AuthorizationModel affects its Store, whose
// deletion waits for it.
func (s *State) Keys(k event.Key) []Key {
	switch k.GroupResource {
	case kinds.Stores().GroupResource:
		return s.keysOfStore(k)
	case kinds.AuthorizationModels().GroupResource:
		return s.keysOfModel(k)
	}
	if i, _ := s.infos.Last(k); i.Value != nil {
		return s.keysAt(organizationKey(i.Value))
	}
	return nil
}

func (s *State) keysOfStore(k event.Key) []Key {
	var keys []Key
	gone := s.Stores.Gone(k)
	for _, o := range gone {
		if o.Value != nil {
			keys = append(keys, storeKeys(recordedOfStore(o.Value).StoreID, o.Value.Status.StoreID)...)
		}
	}
	o, live := s.Stores.Get(k)
	if live {
		if keys = append(keys, keysOfLive(o)...); o.Value.Status.StoreID != "" {
			return keys
		}
	} else if len(gone) == 0 {
		return nil
	}
	for _, m := range s.dependentModules(k) {
		keys = append(keys, s.keysOfLiveModel(m)...)
	}
	return keys
}

func (s *State) keysOfModel(k event.Key) []Key {
	var keys []Key
	if o, live := s.Models.Get(k); live {
		keys = append(s.keysOfLiveModel(o), s.keysAt(o.Value.Spec.StoreRef.Key(k.Cluster))...)
	}
	for _, o := range s.Models.Gone(k) {
		if o.Value != nil {
			keys = append(keys, storeKeys(recordedOfModel(o.Value, "").StoreID)...)
			keys = append(keys, s.keysAt(o.Value.Spec.StoreRef.Key(k.Cluster))...)
		}
	}
	return keys
}

// keysAt returns the keys of a live Store.
func (s *State) keysAt(store event.Key) []Key {
	o, ok := s.Stores.Get(store)
	if !ok {
		return nil
	}
	return keysOfLive(o)
}

func keysOfLive(o informer.Object[corev1alpha1.Store]) []Key {
	return keysOf(o.Key, recordedOfStore(o.Value).StoreID, o.Value.Status.StoreID)
}

func (s *State) keysOfLiveModel(m informer.Object[corev1alpha1.AuthorizationModel]) []Key {
	target := ""
	if of, ok := s.Stores.Get(m.Value.Spec.StoreRef.Key(m.Key.Cluster)); ok {
		target = of.Value.Status.StoreID
	}
	return keysOf(m.Key, recordedOfModel(m.Value, target).StoreID, target)
}

func keysOf(owner event.Key, recorded, target string) []Key {
	if keys := storeKeys(recorded, target); keys != nil {
		return keys
	}
	return []Key{{Owner: owner}}
}

func storeKeys(ids ...string) []Key {
	var keys []Key
	for _, id := range ids {
		if id != "" {
			keys = append(keys, Key{StoreID: id})
		}
	}
	return keys
}
