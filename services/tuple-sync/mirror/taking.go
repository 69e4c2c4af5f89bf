package mirror

import "github.com/entail-dev/entail/services/internal/event"

// isGone reports whether a declared object existed and was deleted, so that its tuples must go.
func (s *State) isGone(k event.Key) bool {
	f, live := s.kind(k.GroupResource).last(k)
	return f.meta != nil && !live
}

// mark records that an object may remove tuples: it was deleted or edited. A new object only adds.
func (s *State) mark(k event.Key) {
	s.taken.mu.Lock()
	defer s.taken.mu.Unlock()
	s.taken.keys[k] = true
}

// taking reports whether an object is marked. It takes no lock of the view, because callers order the queue.
func (s *State) taking(k event.Key) bool {
	s.taken.mu.Lock()
	defer s.taken.mu.Unlock()
	return s.taken.keys[k]
}

// spreading removes the mark.
func (s *State) spreading(k event.Key) {
	s.taken.mu.Lock()
	defer s.taken.mu.Unlock()
	delete(s.taken.keys, k)
}
