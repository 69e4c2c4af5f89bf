package webhook

import (
	"maps"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/view"
)

// targets are the objects that the watcher follows because their kinds are registered.
type targets struct {
	objects *view.Table[metav1.PartialObjectMetadata]
	// names are the types of the kinds of which something was told, observed those whose objects are known, and whether these are
	// in namespaces. Who asks is held up by nobody: each change makes another.
	names    map[event.GroupResource]string
	observed atomic.Pointer[map[string]bool]
}

// followTargets declares their table, and how the index is told of them.
func (s *state) followTargets(cluster string) {
	s.targets.objects, s.targets.names = view.RegisterTargets[metav1.PartialObjectMetadata](s.view, nil), map[event.GroupResource]string{}
	s.targets.observed.Store(&map[string]bool{})
	s.view.OnTarget(func(kind event.GroupResource) { s.observe(kind, s.view.Observation(cluster, kind)) })
}

// namespaced says of a type whose objects are observed whether these are in namespaces.
func (t *targets) namespaced(typ string) (namespaced, observed bool) {
	namespaced, observed = (*t.observed.Load())[typ]
	return namespaced, observed
}

// observe takes in what is told of a kind. What is not observed is not there.
func (s *state) observe(kind event.GroupResource, is view.Observation) {
	typ := iam.Type(kind.Group, is.Kind)
	if is.Kind == "" {
		typ = s.targets.names[kind]
	}
	if typ == "" || ofIAM(typ) { // Objects of IAM are known by what they say.
		return
	}
	if namespaced, observed := s.targets.namespaced(typ); s.targets.names[kind] == typ && observed == is.Observed && namespaced == is.Namespaced {
		return // What becomes of single objects is told as it comes.
	}
	now, was := maps.Clone(*s.targets.observed.Load()), s.targets.names[kind]
	delete(now, was)
	s.targets.names[kind] = typ
	if is.Observed {
		now[typ] = is.Namespaced
	}
	s.targets.observed.Store(&now)
	x := s.shown.Load()
	if x == nil {
		return
	}
	x.SetObserved(was, false)
	for _, key := range s.targets.objects.Keys() {
		if key.GroupResource == kind {
			s.tellTarget(x, key)
		}
	}
	x.SetObserved(typ, is.Observed)
	if s.trust { // Else none is.
		x.Retrust(typ)
	}
}

// tellTarget tells the index of one object: of none, if its kind is not observed.
func (s *state) tellTarget(x *decide.Index, key event.Key) {
	typ, named := s.targets.names[key.GroupResource]
	if !named {
		return
	}
	o, _ := s.targets.objects.Get(key)
	target := targetOf(o.Value)
	if _, observed := s.targets.namespaced(typ); !observed {
		target = nil
	}
	x.SetTarget(typ, key.Namespace, key.Name, target)
}
