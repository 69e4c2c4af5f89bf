package mirror

import (
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// isNew says that a declared object is as it was made: it gives something, and takes nothing away. Of users and accounts that is not
// known, for they may be Inactive by their status; nor of kinds.
func (s *State) isNew(k event.Key) bool {
	switch k.GroupResource {
	case kinds.Users().GroupResource, kinds.IAMServiceAccounts().GroupResource, kinds.ProtectedResources().GroupResource:
		return false
	}
	f, live := s.kind(k.GroupResource).last(k)
	return live && f.alive && f.meta.DeletionTimestamp == nil && f.meta.Generation <= 1
}

// mark says that an object may take something away.
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
