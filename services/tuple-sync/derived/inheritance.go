package derived

import (
	"cmp"
	"sync"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
)

// inheritanceCache caches results that depend on roles only. They are valid for the version of the roles in of.
type inheritanceCache struct {
	mu    sync.Mutex
	of    uint64
	from  *iam.InheritanceCache
	heirs map[string][]event.Key
}

// currentInheritance returns the cached permissions of the present roles.
func (s *State) currentInheritance() *iam.InheritanceCache {
	s.inherited.mu.Lock()
	defer s.inherited.mu.Unlock()
	s.dropOutdatedInheritance()
	return s.inherited.from
}

// dropOutdatedInheritance drops the cache if roles changed. The caller holds the lock. Later results use roles at least as new as the
// version in of.
func (s *State) dropOutdatedInheritance() {
	if changes := s.roles.changeCount(); s.inherited.from == nil || s.inherited.of != changes {
		s.inherited.of, s.inherited.from, s.inherited.heirs = changes, new(iam.InheritanceCache), nil
	}
}

// inheritorsByRole returns the roles that directly inherit each role, by the path of the inherited role.
func (s *State) inheritorsByRole() map[string][]event.Key {
	s.inherited.mu.Lock()
	defer s.inherited.mu.Unlock()
	if s.dropOutdatedInheritance(); s.inherited.heirs == nil {
		s.inherited.heirs = map[string][]event.Key{}
		for _, o := range s.roles.rows.All() {
			for _, ref := range o.Value.Spec.InheritedRoles {
				role := namespacedPath(cmp.Or(ref.Namespace, o.Key.Namespace), ref.Name)
				if o.Key.Cluster == s.store.Cluster {
					s.inherited.heirs[role] = append(s.inherited.heirs[role], o.Key)
				}
			}
		}
	}
	return s.inherited.heirs
}
