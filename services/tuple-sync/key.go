package tuplesync

import (
	"slices"

	"github.com/entail-dev/entail/services/internal/event"
)

// Key is what is reconciled as one: an OpenFGA store with all that is in it, or an
// object that has no store.
type Key struct {
	StoreID string
	Owner   event.Key
}

// String is for logs.
func (k Key) String() string {
	if k.StoreID != "" {
		return "OpenFGA store " + k.StoreID
	}
	return k.Owner.String()
}

// Keys implements [consume.Reconciler]: an object touches the store it belongs to and
// the store it has tuples in. Others may depend on it: the deletion of a Store on those
// that refer to it, and they on whether it exists.
func (s *scene) Keys(k event.Key) []Key {
	var keys []Key
	if o, ok := s.stores.Get(k); ok {
		store := s.store(o)
		keys = keysOf(store)
		if store.Home == "" {
			keys = append(keys, s.keysOfDependents(k)...)
		}
	} else if o, ok := s.models.Get(k); ok {
		keys = append(keysOf(s.model(o)), s.keysOfStore(storeKey(o))...)
	} else if o, ok := s.infos.Get(k); ok {
		keys = s.keysOfStore(organization(o.Value))
	} else {
		keys = s.keysOfTombstone(k)
	}
	return unique(keys)
}

func (s *scene) keysOfStore(k event.Key) []Key {
	o, ok := s.stores.Get(k)
	if !ok {
		return nil
	}
	return keysOf(s.store(o))
}

func (s *scene) keysOfDependents(store event.Key) []Key {
	var keys []Key
	for _, m := range s.dependents(store) {
		keys = append(keys, keysOf(s.model(m))...)
	}
	return keys
}

// keysOfTombstone are those of whom the deletion concerns.
func (s *scene) keysOfTombstone(k event.Key) []Key {
	var keys []Key
	if gone, r, ok := s.buried(k); ok && r.StoreID != "" {
		s.memory.exhume(r, gone)
		keys = append(keys, Key{StoreID: r.StoreID})
	}
	if o, ok := s.stores.Tombstone(k); ok {
		if o.Value != nil && o.Value.Status.StoreID != "" {
			keys = append(keys, Key{StoreID: o.Value.Status.StoreID})
		}
		return append(keys, s.keysOfDependents(k)...)
	}
	if o, ok := s.models.Tombstone(k); ok && o.Value != nil {
		keys = append(keys, s.keysOfStore(storeKey(o))...)
	}
	if o, ok := s.infos.Tombstone(k); ok && o.Value != nil {
		keys = append(keys, s.keysOfStore(organization(o.Value))...)
	}
	return keys
}

func keysOf(o object) []Key {
	var keys []Key
	for _, id := range []string{o.Record.StoreID, o.Home} {
		if id != "" {
			keys = append(keys, Key{StoreID: id})
		}
	}
	if keys == nil {
		return []Key{{Owner: o.Key}}
	}
	return keys
}

func unique(keys []Key) []Key {
	var all []Key
	for _, k := range keys {
		if !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return all
}
