package mirror

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
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/tuple-sync/mirror/plan"
)

// observed are the kinds whose objects the watcher follows because they are registered.
type observed struct {
	mu sync.RWMutex
	// names lead to the types of the kinds, scopes say what is known of each. types are the same by types: of a kind that has
	// another plural by now both may be told.
	names  map[event.GroupResource]string
	scopes map[event.GroupResource]scope
	types  map[string]scope
	// problems are why others are not.
	problems map[event.GroupResource]string
	// forbidden holds an object of each kind that the API server does not let tuple-sync read.
	forbidden map[event.GroupResource]unreadable
	// told is what has changed since it was asked for last, and revision counts that.
	told     news
	revision atomic.Uint64
	of       func(event.GroupResource) view.Observation
}

// scope says of a kind whether its objects are in namespaces, and whether anybody knows which there are.
type scope struct{ namespaced, followed bool }

// followTargets declares the table of targets. Which kinds there are, the bus tells.
func (s *State) followTargets(v *view.View, cluster string) {
	s.observed = &observed{
		names: map[event.GroupResource]string{}, scopes: map[event.GroupResource]scope{}, types: map[string]scope{},
		problems: map[event.GroupResource]string{}, forbidden: map[event.GroupResource]unreadable{}, told: newNews(),
		of: func(kind event.GroupResource) view.Observation { return v.Observation(cluster, kind) },
	}
	s.targets = register(v, s, config[metav1.PartialObjectMetadata]{
		kind: kinds.Kind{GroupResource: kinds.Targets()}, cluster: cluster,
		typ: func(m *metav1.PartialObjectMetadata) string {
			gv, _ := schema.ParseGroupVersion(m.APIVersion) // Of what the watcher wrote.
			return iam.Type(gv.Group, m.Kind)
		},
		matters: func(*metav1.PartialObjectMetadata) (_, _ any) { return nil, nil },
		unsure:  s.observed.unsure,
	})
	v.OnTarget(s.observed.take)
}

// take takes in what is told of a kind. The tail asks for what depends on it.
func (o *observed) take(kind event.GroupResource) {
	is := o.observation(kind)
	o.mu.Lock()
	defer o.mu.Unlock()
	typ, before, now := iam.Type(kind.Group, is.Kind), o.names[kind], scope{is.Namespaced, is.Observed}
	if before == typ && o.scopes[kind] == now && o.problems[kind] == is.Problem {
		return
	}
	o.told.kinds[kind], o.told.types[before], o.told.types[typ] = true, true, true
	o.revision.Add(1)
	delete(o.names, kind)
	if delete(o.scopes, kind); is.Kind != "" {
		o.names[kind], o.scopes[kind] = typ, now
	}
	o.combine(before)
	o.combine(typ)
	if delete(o.problems, kind); is.Problem != "" {
		o.problems[kind] = is.Problem
	}
}

// combine finds what is known of a type by all kinds that have it; the caller holds the lock.
func (o *observed) combine(typ string) {
	delete(o.types, typ)
	for kind, named := range o.names {
		if named == typ && !o.types[typ].followed {
			o.types[typ] = o.scopes[kind]
		}
	}
}

// unsure says of a kind whether it is told that nobody follows its objects: what is known of these may be old.
func (o *observed) unsure(kind event.GroupResource) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	is, told := o.scopes[kind]
	return told && !is.followed
}

// news are the kinds of which something else is told than before, and the types of their objects.
type news struct {
	kinds map[event.GroupResource]bool
	types map[string]bool
}

func newNews() news { return news{map[event.GroupResource]bool{}, map[string]bool{}} }

// news is what was told since this was asked last.
func (o *observed) news() news {
	o.mu.Lock()
	defer o.mu.Unlock()
	told := o.told
	o.told = newNews()
	return told
}

// observe asks for all that depends on whether the objects of kinds are known. Nobody else waits for that.
func (r *Reconciler) observe(n *snapshot, p Pass, told news) {
	if len(told.kinds) == 0 {
		return
	}
	objects := map[string]bool{}
	for _, object := range r.copy.known() {
		if told.types[iam.TypeOf(object)] {
			objects[object] = true
		}
	}
	for typ := range told.types {
		var bindings []event.Key
		for _, b := range r.State.bindings.by(byTargetType, typ) {
			bindings = append(bindings, b.Key)
		}
		r.ask(p, kinds.PolicyBindings().GroupResource, bindings, objects)
		for _, kind := range r.State.all() {
			for _, k := range kind.kin(typ) {
				r.ask(p, k.GroupResource, []event.Key{k}, objects)
			}
		}
	}
	for _, k := range r.State.resources.keys() {
		if o, ok := r.State.resources.rows.Get(k); ok && told.kinds[iam.TargetsOf(o.Value.Spec)] {
			r.revisit(p, k)
		}
	}
	r.enqueue(n, p, objects)
}

func (o *observed) scope(typ string) scope {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.types[typ]
}

// kind finds the objects of a kind; nil if nobody follows it.
func (s *State) kind(of event.GroupResource) followed {
	if of.Target {
		return s.targets
	}
	return s.kinds[of]
}

// all are those of all kinds.
func (s *State) all() []followed { return append(slices.Collect(maps.Values(s.kinds)), s.targets) }

// ofType finds the objects of a type; nil if nobody knows which there are.
func (s *State) ofType(typ string) followed {
	if kind := s.types[typ]; kind != nil {
		return kind
	}
	if s.observed.scope(typ).followed {
		return s.targets
	}
	return nil
}

// scope says of a type whether its objects are in namespaces, and whether anybody knows which there are.
func (s *State) scope(typ string) (namespaced, followed bool) {
	for _, kind := range kinds.IAM() {
		if iam.Type(kind.Group, kind.Kind) == typ {
			return !kind.Global, true
		}
	}
	of := s.observed.scope(typ)
	return of.namespaced, of.followed
}

// owned are the targets that may have parents. The others hold what bindings say, and nothing else.
func (s *State) owned() (objects []string) {
	for _, k := range s.targets.keys() {
		if f, _ := s.targets.last(k); len(f.target.Owners) > 0 {
			objects = append(objects, f.object)
		}
	}
	return objects
}

// isMeant says whether there is a binding on a target, or whatever belongs to it or to which it belongs: most are nobody's.
func (s *State) isMeant(f found) bool {
	owner := ownerIndex(iam.TypeOf(f.object), f.meta.Name)
	return len(f.target.Owners) > 0 || s.bindings.rows.Count(byTarget, f.object) > 0 ||
		slices.ContainsFunc(s.all(), func(k followed) bool { return k.owns(owner) })
}

// idle says that nothing follows from a target, nor followed from what it was.
func (r *Reconciler) idle(k event.Key) bool {
	f, _ := r.State.targets.last(k)
	return f.meta == nil || r.copy.size(f.object) == 0 && !r.State.isMeant(f)
}

// observation is what is to be said of whether the objects of a registered kind are looked for.
func (s *State) observation(p *iamv1alpha1.ProtectedResource) condition.Condition {
	typ, of := iam.Type(p.Spec.ServiceRef.Name, p.Spec.Kind), iam.TargetsOf(p.Spec)
	is := s.observed.observation(of)
	followed := s.types[typ] != nil || is.Observed && iam.Type(of.Group, is.Kind) == typ
	if is.Observed && !followed {
		is.Problem = "the API server calls the kind of " + of.Resource + " " + is.Kind + ": is spec.kind right?"
	}
	return plan.Observed(followed, s.trust, is.Problem)
}
