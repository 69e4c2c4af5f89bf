package mirror

import "github.com/entail-dev/entail/services/internal/event"

// isGone says that a declared object was there, and takes away what it gave.
func (s *State) isGone(k event.Key) bool {
	f, live := s.kind(k.GroupResource).last(k)
	return f.meta != nil && !live
}

// mark says that an object may take something away: it is gone, or says something else than before. One that is new gives.
func (s *State) mark(k event.Key) {
	s.taken.mu.Lock()
	defer s.taken.mu.Unlock()
	s.taken.keys[k] = true
}

// taking says whether an object was marked. It asks nobody: whoever wants to know may hold up everybody.
func (s *State) taking(k event.Key) bool {
	s.taken.mu.Lock()
	defer s.taken.mu.Unlock()
	return s.taken.keys[k]
}

// spreading takes the mark off.
func (s *State) spreading(k event.Key) {
	s.taken.mu.Lock()
	defer s.taken.mu.Unlock()
	delete(s.taken.keys, k)
}
