package informer

import (
	"fmt"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// TargetKindStatus describes a kind whose objects are targets of bindings.
type TargetKindStatus struct {
	// Kind is the name of the kind at the API server; empty while it is unknown. Namespaced reports whether its
	// objects are in namespaces.
	Kind       string
	Namespaced bool
	// Version is the served version of the API group; empty while it is unknown.
	Version string
	// Observed means that the informer holds all objects of the kind. Otherwise Problem is the reason and the remedy.
	Observed bool
	Problem  string
}

// RegisterTargetLister adds one lister for all target kinds. See [RegisterLister].
func RegisterTargetLister[T any](v *Informer, indexes map[string]func(*T) []string) *Lister[T] {
	return RegisterLister[T](v, kinds.Kind{GroupResource: kinds.AllTargets()}, indexes)
}

// OnTargetKindChange adds a callback that runs whenever the [TargetKindStatus] of a kind may have changed. It runs
// between two changes, must be quick, and must not call [Informer.Apply]. Call OnTargetKindChange before
// [Informer.Run].
func (v *Informer) OnTargetKindChange(f func(event.GroupResource)) {
	v.onTarget = append(v.onTarget, f)
}

// TargetKindStatus returns the status of a target kind in a cluster. It is empty before the watcher has reported the
// kind.
func (v *Informer) TargetKindStatus(cluster string, kind event.GroupResource) TargetKindStatus {
	v.mu.RLock()
	defer v.mu.RUnlock()
	kind.Target = true
	m := v.markers[snapshotScope{cluster, kind}]
	if m.message.GetStream() != v.streamID || m.message.GetWithdrawn() {
		return TargetKindStatus{}
	}
	return TargetKindStatus{
		Kind: m.message.GetKind(), Namespaced: m.message.GetNamespaced(), Version: m.message.GetVersion(), Problem: m.message.GetProblem(),
		Observed: m.counted && m.message.GetServed() && m.message.GetProblem() == "",
	}
}

// checkTargetsComplete returns nil if the callbacks of [Informer.OnTargetKindChange] have run for every target kind
// that has a snapshot marker. Withdrawn kinds are not required. The caller holds the lock.
func (v *Informer) checkTargetsComplete() error {
	if _, follows := v.tables[kinds.AllTargets()]; !follows {
		return nil
	}
	for of, m := range v.markers {
		if of.kind.Target && m.message.GetStream() == v.streamID && !m.told && !m.message.GetWithdrawn() {
			return fmt.Errorf("%w: snapshot of %s read up to %d of %d", ErrIncomplete, of, v.position, m.message.GetLastSequence())
		}
	}
	return nil
}

// notifyTargetKinds runs the callbacks of [Informer.OnTargetKindChange] for kinds. Then it removes the objects of the
// kinds that were withdrawn.
func (v *Informer) notifyTargetKinds(kinds []snapshotScope) {
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
		if t, follows := v.tableOf(of.kind); follows && v.markers[of].message.GetWithdrawn() {
			t.dropInSnapshot(of)
		}
		v.mu.Unlock()
	}
}
