package mirror

import (
	"cmp"
	"sync"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
)

// inherited is what follows from the roles since they changed last.
type inherited struct {
	mu    sync.Mutex
	of    uint64
	from  *iam.Inheritance
	heirs map[string][]event.Key
}

// inheritance remembers what the roles give as they are now.
func (s *State) inheritance() *iam.Inheritance {
	s.inherited.mu.Lock()
	defer s.inherited.mu.Unlock()
	s.outdate()
	return s.inherited.from
}

// outdate forgets what was found out before the roles changed; the caller holds the lock. What is found out later is by roles as
// new as the number says, or newer.
func (s *State) outdate() {
	if changes := s.roles.changes(); s.inherited.from == nil || s.inherited.of != changes {
		s.inherited.of, s.inherited.from, s.inherited.heirs = changes, new(iam.Inheritance), nil
	}
}

// inheritors are the roles that inherit each one directly, by its path.
func (s *State) inheritors() map[string][]event.Key {
	s.inherited.mu.Lock()
	defer s.inherited.mu.Unlock()
	if s.outdate(); s.inherited.heirs == nil {
		s.inherited.heirs = map[string][]event.Key{}
		for _, o := range s.roles.rows.All() {
			for _, ref := range o.Value.Spec.InheritedRoles {
				role := path(cmp.Or(ref.Namespace, o.Key.Namespace), ref.Name)
				if o.Key.Cluster == s.store.Cluster {
					s.inherited.heirs[role] = append(s.inherited.heirs[role], o.Key)
				}
			}
		}
	}
	return s.inherited.heirs
}
