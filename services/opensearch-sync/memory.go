package opensearchsync

import (
	"maps"

	"github.com/entail-dev/entail/services/internal/event"
)

// minMemory is of how many objects something is remembered before it is looked for what may be forgotten.
const minMemory = 1024

// memory is what is remembered of objects by their UIDs, while these are known: objects come and go for years, and most are never
// seen to go.
type memory[V any] struct {
	// known reports whether there is still an object of whom something is to be remembered.
	known func(k event.Key, uid string) bool
	of    map[string]remembered[V]
	// room is how many there may be before those are dropped that nobody knows.
	room int
}

type remembered[V any] struct {
	key   event.Key
	value V
}

func newMemory[V any](known func(k event.Key, uid string) bool) memory[V] {
	return memory[V]{known: known, of: map[string]remembered[V]{}, room: minMemory}
}

func (m *memory[V]) get(uid string) (value V, ok bool) {
	is, ok := m.of[uid]
	return is.value, ok
}

func (m *memory[V]) put(k event.Key, uid string, value V) {
	if len(m.of) >= m.room {
		maps.DeleteFunc(m.of, func(uid string, of remembered[V]) bool { return !m.known(of.key, uid) })
		m.room = max(minMemory, 2*len(m.of))
	}
	m.of[uid] = remembered[V]{k, value}
}

func (m *memory[V]) forget(uid string) { delete(m.of, uid) }
