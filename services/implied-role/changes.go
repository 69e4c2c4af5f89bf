package impliedrole

import (
	"maps"

	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// changeSet is what the view has taken in of a namespace since a pass last took note of it. What
// this process writes itself is no change.
type changeSet struct {
	// all means that anything may have changed.
	all bool
	// bindings are names of RoleBindings that have changed, sources those to plan for.
	bindings, sources map[string]struct{}
	// gone are objects that have been deleted.
	gone map[event.Key]struct{}
}

func newChangeSet(all bool) changeSet {
	return changeSet{all: all, bindings: map[string]struct{}{}, sources: map[string]struct{}{}, gone: map[event.Key]struct{}{}}
}

func (s changeSet) add(sources ...string) {
	for _, source := range sources {
		s.sources[source] = struct{}{}
	}
}

// merge adds what other changes concern.
func (s changeSet) merge(other changeSet) {
	maps.Copy(s.sources, other.sources)
	maps.Copy(s.gone, other.gone)
}

// Changed is told of every change of the view.
func (m *memory) Changed(k event.Key) {
	n := m.known(k.Namespace)
	if n == nil {
		return // Everything is new of it.
	}
	switch k.GroupResource {
	case kinds.RoleBindings().GroupResource:
		b, live := m.state.Bindings.Last(k)
		n.changed(b.Change, live, m.sourcesOf(k, b)...)
	case kinds.ImpliedRoles().GroupResource:
		r, live := m.state.Rules.Last(k)
		n.changed(r.Change, live)
	}
}

// sourcesOf lists what a binding concerns: itself as a source, unless it is generated and has
// always been, and the source that it was generated from.
func (m *memory) sourcesOf(k event.Key, b state.Binding) []string {
	if b.Value == nil {
		return []string{k.Name}
	}
	sources := []string{state.SourceOf(b.Value)}
	if m.state.GeneratedFrom(k.Namespace, k.Name) > 0 {
		sources = append(sources, k.Name)
	}
	return sources
}

// Reloaded is told when the view was loaded anew: objects may be gone without a change.
func (m *memory) Reloaded() {
	for _, name := range m.names() {
		m.of(name).everything()
	}
}

func (n *namespace) changed(c event.Change, live bool, sources ...string) {
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
		n.changes.add(sources...)
	}
}

// ours takes in a state that this process made.
func (n *namespace) ours(c event.Change, take func() error) error {
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

// everything makes all of a namespace be planned anew.
func (n *namespace) everything() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes.all = true
}

// take hands over the changes of a namespace.
func (n *namespace) take() changeSet {
	n.mu.Lock()
	defer n.mu.Unlock()
	changes := n.changes
	n.changes = newChangeSet(false)
	if changes.all {
		n.listed = listing{}
	}
	for name := range changes.bindings { // What has changed since it was listed is read for itself.
		delete(n.listed.bindings, name)
	}
	return changes
}

// restore gives back what is left of changes that were taken.
func (n *namespace) restore(left changeSet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes.all = n.changes.all || left.all
	n.changes.merge(left)
}

// pending reports whether there are changes that no pass has taken.
func (n *namespace) pending() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changes.all || len(n.changes.bindings)+len(n.changes.gone) > 0
}
