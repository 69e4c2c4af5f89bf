package opensearchsync

import (
	"maps"

	"github.com/entail-dev/entail/services/internal/event"
)

// minMemory bounds the values that a memory holds before it looks for obsolete ones.
const minMemory = 1024

// perObjectCache holds a value for each object, by UID, while the object is known. Most deletions are never observed, so it
// drops obsolete values as it grows.
type perObjectCache[V any] struct {
	// known reports whether the value of an object is still needed.
	known func(k event.Key, uid string) bool
	of    map[string]cachedValue[V]
	// room is the number of values at which the next cleanup runs.
	room int
}

type cachedValue[V any] struct {
	key   event.Key
	value V
}

func newPerObjectCache[V any](known func(k event.Key, uid string) bool) perObjectCache[V] {
	return perObjectCache[V]{known: known, of: map[string]cachedValue[V]{}, room: minMemory}
}

func (m *perObjectCache[V]) getValue(uid string) (value V, ok bool) {
	is, ok := m.of[uid]
	return is.value, ok
}

func (m *perObjectCache[V]) putValue(k event.Key, uid string, value V) {
	if len(m.of) >= m.room {
		maps.DeleteFunc(m.of, func(uid string, of cachedValue[V]) bool { return !m.known(of.key, uid) })
		m.room = max(minMemory, 2*len(m.of))
	}
	m.of[uid] = cachedValue[V]{k, value}
}

func (m *perObjectCache[V]) forgetUID(uid string) { delete(m.of, uid) }
