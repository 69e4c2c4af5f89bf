package mirror

import (
	"maps"
	"slices"
)

// await has a key asked for once somebody has made the object be in step. Look only then whether it is.
func (m *mirrored) await(object string, key Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[object] == nil {
		m.waiting[object] = map[Key]bool{}
	}
	m.waiting[object][key] = true
}

// awaited lists the keys that wait for an object.
func (m *mirrored) awaited(object string) []Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.waiting[object]))
}

// leave ends that.
func (m *mirrored) leave(object string, key Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delete(m.waiting[object], key); len(m.waiting[object]) == 0 {
		delete(m.waiting, object)
	}
}

// release lists them, and ends it for all.
func (m *mirrored) release(object string) []Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.Collect(maps.Keys(m.waiting[object]))
	delete(m.waiting, object)
	return keys
}
