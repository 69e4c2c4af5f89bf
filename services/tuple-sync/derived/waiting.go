package derived

import (
	"maps"
	"slices"
)

// addWaiter enqueues a key once a pass has brought the object in step. The caller checks the object only afterwards, so
// that no such pass is missed.
func (m *tupleReplica) addWaiter(object string, key Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[object] == nil {
		m.waiting[object] = map[Key]bool{}
	}
	m.waiting[object][key] = true
}

// waitingKeys lists the keys that wait for an object.
func (m *tupleReplica) waitingKeys(object string) []Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.waiting[object]))
}

// removeWaiter removes a key from the waiters of an object.
func (m *tupleReplica) removeWaiter(object string, key Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delete(m.waiting[object], key); len(m.waiting[object]) == 0 {
		delete(m.waiting, object)
	}
}

// takeWaiters removes and returns all keys that wait for an object.
func (m *tupleReplica) takeWaiters(object string) []Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.Collect(maps.Keys(m.waiting[object]))
	delete(m.waiting, object)
	return keys
}
