package impliedrole

import (
	"maps"

	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// changeSet holds the changes of a namespace that the informer received since the last pass. Writes of this process do
// not count.
type changeSet struct {
	// all means that every object may have changed.
	all bool
	// bindings holds the names of changed RoleBindings, sources the names of the sources to plan.
	bindings, sources map[string]struct{}
	// gone holds the keys of deleted objects.
	gone map[event.Key]struct{}
}

func newChangeSet(all bool) changeSet {
	return changeSet{all: all, bindings: map[string]struct{}{}, sources: map[string]struct{}{}, gone: map[event.Key]struct{}{}}
}

func (s changeSet) addSources(sources ...string) {
	for _, source := range sources {
		s.sources[source] = struct{}{}
	}
}

// mergeChanges adds the sources and deleted objects of other.
func (s changeSet) mergeChanges(other changeSet) {
	maps.Copy(s.sources, other.sources)
	maps.Copy(s.gone, other.gone)
}

// RecordChange records a change. The informer calls it for every change.
func (m *passHistory) RecordChange(k event.Key) {
	n := m.findNamespaceHistory(k.Namespace)
	if n == nil {
		return // The first pass plans everything.
	}
	switch k.GroupResource {
	case kinds.RoleBindings().GroupResource:
		b, live := m.state.Bindings.GetOrTombstone(k)
		n.recordChange(b.Change, live, m.sourcesToPlan(k, b)...)
	case kinds.ImpliedRoles().GroupResource:
		r, live := m.state.Rules.GetOrTombstone(k)
		n.recordChange(r.Change, live)
	}
}

// sourcesToPlan lists the sources to plan after a change of a binding: the source that it was generated from, or else the
// binding itself. It adds the binding if other bindings were generated from it.
func (m *passHistory) sourcesToPlan(k event.Key, b state.Binding) []string {
	if b.Value == nil {
		return []string{k.Name}
	}
	sources := []string{state.SourceName(b.Value)}
	if m.state.CountGeneratedFrom(k.Namespace, k.Name) > 0 {
		sources = append(sources, k.Name)
	}
	return sources
}

// MarkAllNamespaces marks all namespaces. The informer calls it after it was loaded again, when objects may be gone
// without a change.
func (m *passHistory) MarkAllNamespaces() {
	for _, name := range m.namespaceNames() {
		m.ensureNamespaceHistory(name).markAllChanged()
	}
}

func (n *namespaceHistory) recordChange(c event.Change, live bool, sources ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if own, ok := n.own[c.Key]; ok && own.UID == c.UID && own.ResourceVersion == c.ResourceVersion && own.Deleted == !live {
		return
	}
	if !live {
		n.changes.gone[c.Key] = struct{}{}
	}
	if len(sources) > 0 {
		n.changes.bindings[c.Key.Name] = struct{}{}
		n.changes.addSources(sources...)
	}
}

// storeOwnWrite stores a state that this process wrote. Meanwhile [passHistory.RecordChange] ignores that state.
func (n *namespaceHistory) storeOwnWrite(c event.Change, take func() error) error {
	n.mu.Lock()
	n.own[c.Key] = c
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.own, c.Key)
	}()
	return take()
}

// markAllChanged makes the next pass plan the whole namespace.
func (n *namespaceHistory) markAllChanged() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes.all = true
}

// takePendingChanges returns the changes of a namespace and resets them.
func (n *namespaceHistory) takePendingChanges() changeSet {
	n.mu.Lock()
	defer n.mu.Unlock()
	changes := n.changes
	n.changes = newChangeSet(false)
	if changes.all {
		n.listed = sourceListing{}
	}
	for name := range changes.bindings { // A binding that changed after the listing is read again.
		delete(n.listed.bindings, name)
	}
	return changes
}

// restoreChanges puts back the changes that a pass did not complete.
func (n *namespaceHistory) restoreChanges(left changeSet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes.all = n.changes.all || left.all
	n.changes.mergeChanges(left)
}

// hasPendingChanges reports whether changes exist that no pass has taken.
func (n *namespaceHistory) hasPendingChanges() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changes.all || len(n.changes.bindings)+len(n.changes.gone) > 0
}
