package derived

import "github.com/entail-dev/entail/services/internal/event"

// isDeleted reports whether a declared object existed and was deleted, so that its tuples must go.
func (s *State) isDeleted(k event.Key) bool {
	f, live := s.tableOf(k.GroupResource).liveOrDeleted(k)
	return f.meta != nil && !live
}

// markRevoking records that an object may remove tuples: it was deleted or edited. A new object only adds.
func (s *State) markRevoking(k event.Key) {
	s.taken.mu.Lock()
	defer s.taken.mu.Unlock()
	s.taken.keys[k] = true
}

// isMarkedRevoking reports whether an object is marked. It takes no lock of the informer, because callers order the
// queue.
func (s *State) isMarkedRevoking(k event.Key) bool {
	s.taken.mu.Lock()
	defer s.taken.mu.Unlock()
	return s.taken.keys[k]
}

// clearRevoking removes the mark.
func (s *State) clearRevoking(k event.Key) {
	s.taken.mu.Lock()
	defer s.taken.mu.Unlock()
	delete(s.taken.keys, k)
}
