package mirror

import (
	"cmp"
	"sync"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
)

// inherited caches results that depend on roles only. They are valid for the version of the roles in of.
type inherited struct {
	mu    sync.Mutex
	of    uint64
	from  *iam.Inheritance
	heirs map[string][]event.Key
}

// inheritance returns the cached permissions of the present roles.
func (s *State) inheritance() *iam.Inheritance {
	s.inherited.mu.Lock()
	defer s.inherited.mu.Unlock()
	s.outdate()
	return s.inherited.from
}

// outdate drops the cache if roles changed. The caller holds the lock. Later results use roles at least as new as the
// version in of.
func (s *State) outdate() {
	if changes := s.roles.changes(); s.inherited.from == nil || s.inherited.of != changes {
		s.inherited.of, s.inherited.from, s.inherited.heirs = changes, new(iam.Inheritance), nil
	}
}

// inheritors returns the roles that directly inherit each role, by the path of the inherited role.
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
