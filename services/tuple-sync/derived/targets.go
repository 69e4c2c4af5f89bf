package derived

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/derived/plan"
)

// targetKindObservations holds the registered kinds, and whether the watcher follows their objects.
type targetKindObservations struct {
	mu sync.RWMutex
	// names holds the type of each kind, and scopes what is known of it. types holds the same by type. Two kinds may
	// have one type while a plural name changes.
	names  map[event.GroupResource]string
	scopes map[event.GroupResource]kindScope
	types  map[string]kindScope
	// problems holds why the watcher does not follow a kind.
	problems map[event.GroupResource]string
	// told holds the changes since the last call of news. revision counts changes.
	told     observationChanges
	revision atomic.Uint64
	of       func(event.GroupResource) informer.TargetKindStatus
}

// kindScope holds whether the objects of a kind have namespaces, and whether the watcher follows them.
type kindScope struct{ namespaced, followed bool }

// registerTargets registers the table of targets. The stream brings the kinds.
func (s *State) registerTargets(v *informer.Informer, cluster string) {
	s.observed = &targetKindObservations{
		names: map[event.GroupResource]string{}, scopes: map[event.GroupResource]kindScope{}, types: map[string]kindScope{},
		problems: map[event.GroupResource]string{}, told: newObservationChanges(),
		of: func(kind event.GroupResource) informer.TargetKindStatus { return v.TargetKindStatus(cluster, kind) },
	}
	s.targets = registerTable(v, s, tableConfig[metav1.PartialObjectMetadata]{
		kind: kinds.Kind{GroupResource: kinds.AllTargets()}, cluster: cluster,
		typ: func(m *metav1.PartialObjectMetadata) string {
			gv, _ := schema.ParseGroupVersion(m.APIVersion) // The watcher wrote it, so it parses.
			return iam.OpenFGAType(gv.Group, m.Kind)
		},
		matters: func(*metav1.PartialObjectMetadata) (_, _ any) { return nil, nil },
		unsure:  s.observed.isUnobserved,
	})
	v.OnTargetKindChange(s.observed.updateObservation)
}

// updateObservation stores a new observation of a kind. The tail enqueues everything that depends on it.
func (o *targetKindObservations) updateObservation(kind event.GroupResource) {
	is := o.of(kind)
	o.mu.Lock()
	defer o.mu.Unlock()
	typ, before, now := iam.OpenFGAType(kind.Group, is.Kind), o.names[kind], kindScope{is.Namespaced, is.Observed}
	if before == typ && o.scopes[kind] == now && o.problems[kind] == is.Problem {
		return
	}
	o.told.kinds[kind], o.told.types[before], o.told.types[typ] = true, true, true
	o.revision.Add(1)
	delete(o.names, kind)
	if delete(o.scopes, kind); is.Kind != "" {
		o.names[kind], o.scopes[kind] = typ, now
	}
	o.recomputeTypeScope(before)
	o.recomputeTypeScope(typ)
	if delete(o.problems, kind); is.Problem != "" {
		o.problems[kind] = is.Problem
	}
}

// recomputeTypeScope sets the scope of a type from all kinds that have it; a followed kind wins. The caller holds the
// lock.
func (o *targetKindObservations) recomputeTypeScope(typ string) {
	delete(o.types, typ)
	for kind, named := range o.names {
		if named == typ && !o.types[typ].followed {
			o.types[typ] = o.scopes[kind]
		}
	}
}

// isUnobserved reports whether a kind is known and not followed. Its objects in the table may be outdated.
func (o *targetKindObservations) isUnobserved(kind event.GroupResource) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	is, told := o.scopes[kind]
	return told && !is.followed
}

// observationChanges holds the kinds whose observation changed, and their types.
type observationChanges struct {
	kinds map[event.GroupResource]bool
	types map[string]bool
}

func newObservationChanges() observationChanges {
	return observationChanges{map[event.GroupResource]bool{}, map[string]bool{}}
}

// takeChanges returns the changes since its last call.
func (o *targetKindObservations) takeChanges() observationChanges {
	o.mu.Lock()
	defer o.mu.Unlock()
	told := o.told
	o.told = newObservationChanges()
	return told
}

// enqueueDependentsOfChangedKinds enqueues everything that depends on the changed kinds.
func (r *Reconciler) enqueueDependentsOfChangedKinds(n *iamSnapshot, p ReconcileRequest, told observationChanges) {
	if len(told.kinds) == 0 {
		return
	}
	objects := map[string]bool{}
	for _, object := range r.copy.objectsWithTuples() {
		if told.types[iam.TypeOfObject(object)] {
			objects[object] = true
		}
	}
	for typ := range told.types {
		var bindings []event.Key
		for _, b := range r.State.bindings.liveObjectsBy(byTargetType, typ) {
			bindings = append(bindings, b.Key)
		}
		r.enqueueDeclaredObjects(p, bindings, objects)
		for _, kind := range r.State.allTables() {
			for _, k := range kind.keysRelatedToType(typ) {
				r.enqueueDeclaredObjects(p, []event.Key{k}, objects)
			}
		}
	}
	for _, k := range r.State.resources.liveKeys() {
		if o, ok := r.State.resources.rows.Get(k); ok && told.kinds[iam.TargetResource(o.Value.Spec)] {
			r.requeueStatus(p, k)
		}
	}
	r.enqueueObjects(n, p, objects)
}

func (o *targetKindObservations) typeScope(typ string) kindScope {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.types[typ]
}

// tableOf returns the table of a kind, or nil.
func (s *State) tableOf(of event.GroupResource) objectTable {
	if of.Target {
		return s.targets
	}
	return s.kinds[of]
}

// allTables returns all tables.
func (s *State) allTables() []objectTable {
	return append(slices.Collect(maps.Values(s.kinds)), s.targets)
}

// tableOfType returns the table of a type; nil if the watcher does not follow its objects.
func (s *State) tableOfType(typ string) objectTable {
	if kind := s.types[typ]; kind != nil {
		return kind
	}
	if s.observed.typeScope(typ).followed {
		return s.targets
	}
	return nil
}

// typeScope reports whether the objects of a type have namespaces, and whether the watcher follows them.
func (s *State) typeScope(typ string) (namespaced, followed bool) {
	for _, kind := range kinds.IAMKinds() {
		if iam.OpenFGAType(kind.Group, kind.Kind) == typ {
			return !kind.ClusterScoped, true
		}
	}
	of := s.observed.typeScope(typ)
	return of.namespaced, of.followed
}

// ownedTargets returns the targets that may have parents. The tuples of other targets follow from bindings alone.
func (s *State) ownedTargets() (objects []string) {
	for _, k := range s.targets.liveKeys() {
		if f, _ := s.targets.liveOrDeleted(k); len(f.target.Owners) > 0 {
			objects = append(objects, f.object)
		}
	}
	return objects
}

// isTargetReferenced reports whether a target matters: it has a binding or an owner, or it owns something. Most targets do not.
func (s *State) isTargetReferenced(f sourceObject) bool {
	owner := ownerIndexKey(iam.TypeOfObject(f.object), f.meta.Name)
	return len(f.target.Owners) > 0 || s.bindings.rows.CountByIndex(byTarget, f.object) > 0 ||
		slices.ContainsFunc(s.allTables(), func(k objectTable) bool { return k.hasObjectsOwnedBy(owner) })
}

// isUnusedTarget reports whether a target has no tuples and none can follow from it.
func (r *Reconciler) isUnusedTarget(k event.Key) bool {
	f, _ := r.State.targets.liveOrDeleted(k)
	return f.meta == nil || r.copy.tupleCount(f.object) == 0 && !r.State.isTargetReferenced(f)
}

// observedCondition returns the condition Observed of a registered kind.
func (s *State) observedCondition(p *iamv1alpha1.ProtectedResource) condition.Condition {
	typ, of := iam.OpenFGAType(p.Spec.ServiceRef.Name, p.Spec.Kind), iam.TargetResource(p.Spec)
	is := s.observed.of(of)
	followed := s.types[typ] != nil || is.Observed && iam.OpenFGAType(of.Group, is.Kind) == typ
	if is.Observed && !followed {
		is.Problem = "the API server calls the kind of " + of.Resource + " " + is.Kind + ": is spec.kind right?"
	}
	return plan.ObservedCondition(followed, s.trust, is.Problem)
}
