package opensearchsync

import (
	"maps"

	"github.com/entail-dev/entail/services/internal/event"
)

// minMemory bounds the values that a memory holds before it looks for obsolete ones.
const minMemory = 1024

// memory holds a value for each object, by UID, while the object is known. Most deletions are never observed, so it
// drops obsolete values as it grows.
type memory[V any] struct {
	// known reports whether the value of an object is still needed.
	known func(k event.Key, uid string) bool
	of    map[string]remembered[V]
	// room is the number of values at which the next cleanup runs.
	room int
}

type remembered[V any] struct {
	key   event.Key
	value V
}

func newMemory[V any](known func(k event.Key, uid string) bool) memory[V] {
	return memory[V]{known: known, of: map[string]remembered[V]{}, room: minMemory}
}

func (m *memory[V]) getValue(uid string) (value V, ok bool) {
	is, ok := m.of[uid]
	return is.value, ok
}

func (m *memory[V]) putValue(k event.Key, uid string, value V) {
	if len(m.of) >= m.room {
		maps.DeleteFunc(m.of, func(uid string, of remembered[V]) bool { return !m.known(of.key, uid) })
		m.room = max(minMemory, 2*len(m.of))
	}
	m.of[uid] = remembered[V]{k, value}
}

func (m *memory[V]) forgetUID(uid string) { delete(m.of, uid) }
