package webhook

import (
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
	// told is what is known of each kind of which something was told: of one that has another plural by now perhaps by both.
	told map[event.GroupResource]told
	// observed are the types whose objects are known, and whether these are in namespaces. Who asks is held up by nobody: each
	// change makes another.
	observed atomic.Pointer[map[string]bool]
}

// told is what is known of a kind: the type of its objects, whether these are known, and in namespaces.
type told struct {
	typ                  string
	observed, namespaced bool
}

// followTargets declares their table, and how the index is told of them.
func (s *state) followTargets(cluster string) {
	s.targets.objects, s.targets.told = view.RegisterTargets[metav1.PartialObjectMetadata](s.view, nil), map[event.GroupResource]told{}
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
	was, now := s.targets.told[kind], told{iam.Type(kind.Group, is.Kind), is.Observed, is.Observed && is.Namespaced}
	if is.Kind == "" {
		now.typ = was.typ
	}
	if now.typ == "" || ofIAM(now.typ) || now == was { // Objects of IAM are known by what they say, single others are told as they come.
		return
	}
	s.targets.told[kind] = now
	observed := map[string]bool{}
	for _, one := range s.targets.told {
		if one.observed {
			observed[one.typ] = one.namespaced
		}
	}
	s.targets.observed.Store(&observed)
	x := s.shown.Load()
	if x == nil {
		return
	}
	types := []string{was.typ, now.typ} // The plural of one kind may become that of another.
	x.SetObserved(was.typ, false)
	for _, key := range s.targets.objects.Keys() {
		if key.GroupResource == kind {
			for _, typ := range types {
				s.tellTarget(x, typ, key)
			}
		}
	}
	for _, typ := range types {
		_, observed := s.targets.namespaced(typ)
		x.SetObserved(typ, observed)
		if s.trust { // Else none is.
			x.Retrust(typ)
		}
	}
}

// tellTarget tells the index of what has the name of an object, by a type that its kind has or had: of none, if no kind of that type is
// observed.
func (s *state) tellTarget(x *decide.Index, typ string, key event.Key) {
	if typ != "" {
		x.SetTarget(typ, key.Namespace, key.Name, s.targets.named(typ, key))
	}
}

// named is an object of a type that has a name, by whatever plural, its own first; nil if there is none.
func (t *targets) named(typ string, key event.Key) *iam.Target {
	if target := t.at(typ, key); target != nil {
		return target
	}
	for key.GroupResource = range t.told {
		if target := t.at(typ, key); target != nil {
			return target
		}
	}
	return nil
}

// at is an object of a kind that is observed, and has a type.
func (t *targets) at(typ string, key event.Key) *iam.Target {
	if is := t.told[key.GroupResource]; !is.observed || is.typ != typ {
		return nil
	}
	o, _ := t.objects.Get(key)
	return targetOf(o.Value)
}
