package opensearchsync

import (
	"maps"

	"github.com/entail-dev/entail/services/internal/event"
)

// minMemory bounds the values that a memory holds before it looks for obsolete ones.
const minMemory = 1024

// objectMemory holds a value for each object, by UID, while the object is known. Most deletions are never observed, so it
// drops obsolete values as it grows.
type objectMemory[V any] struct {
	// known reports whether the value of an object is still needed.
	known func(k event.Key, uid string) bool
	of    map[string]rememberedValue[V]
	// room is the number of values at which the next cleanup runs.
	room int
}

type rememberedValue[V any] struct {
	key   event.Key
	value V
}

func newObjectMemory[V any](known func(k event.Key, uid string) bool) objectMemory[V] {
	return objectMemory[V]{known: known, of: map[string]rememberedValue[V]{}, room: minMemory}
}

func (m *objectMemory[V]) getValue(uid string) (value V, ok bool) {
	is, ok := m.of[uid]
	return is.value, ok
}

func (m *objectMemory[V]) putValue(k event.Key, uid string, value V) {
	if len(m.of) >= m.room {
		maps.DeleteFunc(m.of, func(uid string, of rememberedValue[V]) bool { return !m.known(of.key, uid) })
		m.room = max(minMemory, 2*len(m.of))
	}
	m.of[uid] = rememberedValue[V]{k, value}
}

func (m *objectMemory[V]) forgetUID(uid string) { delete(m.of, uid) }
