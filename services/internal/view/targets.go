package view

import (
	"fmt"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Observation is what is known of a kind whose objects are targets.
type Observation struct {
	// Kind is what the API server calls it, Namespaced whether its objects are in namespaces; empty while nobody knows.
	Kind       string
	Namespaced bool
	// Version is that of its group in which it is served; empty while nobody knows.
	Version string
	// Observed says that the view holds its objects: one that it does not hold is not there. Problem is why not, and what to do.
	Observed bool
	Problem  string
}

// RegisterTargets declares the table of all kinds whose objects are targets, as [Register] does that of one kind.
func RegisterTargets[T any](v *View, indexes map[string]func(*T) []string) *Table[T] {
	return Register[T](v, kinds.Kind{GroupResource: kinds.Targets()}, indexes)
}

// OnTarget calls f whenever the [Observation] of a kind may have changed, between two changes. It must be quick, and apply nothing.
// Call it before [View.Run].
func (v *View) OnTarget(f func(event.GroupResource)) { v.onTarget = append(v.onTarget, f) }

// Observation tells of a kind of targets in a cluster; of one that the watcher has said nothing of, nothing.
func (v *View) Observation(cluster string, kind event.GroupResource) Observation {
	v.mu.RLock()
	defer v.mu.RUnlock()
	kind.Target = true
	m := v.markers[snapshot{cluster, kind}]
	if m.message.GetStream() != v.incarnation || m.message.GetWithdrawn() {
		return Observation{}
	}
	return Observation{
		Kind: m.message.GetKind(), Namespaced: m.message.GetNamespaced(), Version: m.message.GetVersion(), Problem: m.message.GetProblem(),
		Observed: m.counted && m.message.GetServed() && m.message.GetProblem() == "",
	}
}

// targetsComplete is nil once the view holds all targets that markers speak of, but for what nobody asks about any more; the caller
// holds the lock.
func (v *View) targetsComplete() error {
	if _, follows := v.tables[kinds.Targets()]; !follows {
		return nil
	}
	for of, m := range v.markers {
		if of.kind.Target && m.message.GetStream() == v.incarnation && !m.told && !m.message.GetWithdrawn() {
			return fmt.Errorf("%w: snapshot of %s read up to %d of %d", ErrIncomplete, of, v.position, m.message.GetLastSequence())
		}
	}
	return nil
}

// observed tells of kinds whose markers were counted. Of what was withdrawn nothing is held any more: it is told before that.
func (v *View) observed(kinds []snapshot) {
	if len(kinds) == 0 {
		return
	}
	v.applying.Lock()
	defer v.applying.Unlock()
	for _, of := range kinds {
		for _, f := range v.onTarget {
			f(of.kind)
		}
		v.mu.Lock()
		if m := v.markers[of]; m.counted {
			m.told = true
			v.markers[of] = m
		}
		if t, follows := v.table(of.kind); follows && v.markers[of].message.GetWithdrawn() {
			t.void(of)
		}
		v.mu.Unlock()
	}
}
