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

// AffectedKeys returns the keys that depend on an object: the store of its record and the store that it belongs to. A Store
// without an OpenFGA store also affects its AuthorizationModels. An AuthorizationModel affects its Store, whose
// deletion waits for it.
func (s *State) AffectedKeys(k event.Key) []Key {
	switch k.GroupResource {
	case kinds.Stores().GroupResource:
		return s.keysAffectedByStore(k)
	case kinds.AuthorizationModels().GroupResource:
		return s.keysAffectedByModel(k)
	}
	if i, _ := s.infos.GetOrTombstone(k); i.Value != nil {
		return s.keysOfStoreAt(organizationStoreKey(i.Value))
	}
	return nil
}

func (s *State) keysAffectedByStore(k event.Key) []Key {
	var keys []Key
	gone := s.Stores.Tombstones(k)
	for _, o := range gone {
		if o.Value != nil {
			keys = append(keys, openFGAStoreKeys(storedRecordOfStore(o.Value).StoreID, o.Value.Status.StoreID)...)
		}
	}
	o, live := s.Stores.Get(k)
	if live {
		if keys = append(keys, keysOfLiveStore(o)...); o.Value.Status.StoreID != "" {
			return keys
		}
	} else if len(gone) == 0 {
		return nil
	}
	for _, m := range s.modelsOfStore(k) {
		keys = append(keys, s.keysOfLiveModel(m)...)
	}
	return keys
}

func (s *State) keysAffectedByModel(k event.Key) []Key {
	var keys []Key
	if o, live := s.Models.Get(k); live {
		keys = append(s.keysOfLiveModel(o), s.keysOfStoreAt(o.Value.Spec.StoreRef.Key(k.Cluster))...)
	}
	for _, o := range s.Models.Tombstones(k) {
		if o.Value != nil {
			keys = append(keys, openFGAStoreKeys(storedRecordOfModel(o.Value, "").StoreID)...)
			keys = append(keys, s.keysOfStoreAt(o.Value.Spec.StoreRef.Key(k.Cluster))...)
		}
	}
	return keys
}

// keysOfStoreAt returns the keys of a live Store.
func (s *State) keysOfStoreAt(store event.Key) []Key {
	o, ok := s.Stores.Get(store)
	if !ok {
		return nil
	}
	return keysOfLiveStore(o)
}

func keysOfLiveStore(o informer.Object[corev1alpha1.Store]) []Key {
	return recordedAndTargetKeys(o.Key, storedRecordOfStore(o.Value).StoreID, o.Value.Status.StoreID)
}

func (s *State) keysOfLiveModel(m informer.Object[corev1alpha1.AuthorizationModel]) []Key {
	target := ""
	if of, ok := s.Stores.Get(m.Value.Spec.StoreRef.Key(m.Key.Cluster)); ok {
		target = of.Value.Status.StoreID
	}
	return recordedAndTargetKeys(m.Key, storedRecordOfModel(m.Value, target).StoreID, target)
}

func recordedAndTargetKeys(owner event.Key, recorded, target string) []Key {
	if keys := openFGAStoreKeys(recorded, target); keys != nil {
		return keys
	}
	return []Key{{Owner: owner}}
}

func openFGAStoreKeys(ids ...string) []Key {
	var keys []Key
	for _, id := range ids {
		if id != "" {
			keys = append(keys, Key{StoreID: id})
		}
	}
	return keys
}
