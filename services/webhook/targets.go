package webhook

import (
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/informer"
)

// targets holds the objects that the watcher follows because their kinds are registered.
type targets struct {
	objects *informer.Lister[metav1.PartialObjectMetadata]
	// told holds the last observation of each resource. A kind whose plural has changed can be present under both
	// names.
	told map[event.GroupResource]told
	// observed maps each followed type to whether its objects are in namespaces. Each change replaces the map, so
	// readers need no lock.
	observed atomic.Pointer[map[string]bool]
}

// told is an observation of a kind: its type, whether its objects are followed, and whether they are in namespaces.
type told struct {
	typ                  string
	observed, namespaced bool
}

// followTargets registers the table of targets and the callback for observations.
func (s *state) followTargets(cluster string) {
	s.targets.objects, s.targets.told = informer.RegisterTargets[metav1.PartialObjectMetadata](s.view, nil), map[event.GroupResource]told{}
	s.targets.observed.Store(&map[string]bool{})
	s.view.OnTarget(func(kind event.GroupResource) { s.applyObservation(kind, s.view.Observation(cluster, kind)) })
}

// scopeOf reports whether objects of a type are in namespaces. observed is false for types that are not followed.
func (t *targets) scopeOf(typ string) (scopeOf, observed bool) {
	scopeOf, observed = (*t.observed.Load())[typ]
	return scopeOf, observed
}

// applyObservation applies an observation of a kind to the index. Objects of a kind that is not observed count as absent.
func (s *state) applyObservation(kind event.GroupResource, is informer.Observation) {
	was, now := s.targets.told[kind], told{iam.Type(kind.Group, is.Kind), is.Observed, is.Observed && is.Namespaced}
	if is.Kind == "" {
		now.typ = was.typ
	}
	if now.typ == "" || isIAMKind(now.typ) || now == was { // The tables of IAM kinds feed the index themselves.
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
	types := []string{was.typ, now.typ} // A plural can move from one kind to another.
	x.SetObserved(was.typ, false)
	for _, key := range s.targets.objects.Keys() {
		if key.GroupResource == kind {
			for _, typ := range types {
				s.tellTarget(x, typ, key)
			}
		}
	}
	for _, typ := range types {
		_, observed := s.targets.scopeOf(typ)
		x.SetObserved(typ, observed)
		if s.trust { // Otherwise no type is trusted.
			x.RefreshTrust(typ)
		}
	}
}

// tellTarget sets the target of a name in the index, for the current or an earlier type of its kind. The target is nil
// if no observed kind has that type.
func (s *state) tellTarget(x *authz.Index, typ string, key event.Key) {
	if typ != "" {
		x.SetTarget(typ, key.Namespace, key.Name, s.targets.targetNamed(typ, key))
	}
}

// targetNamed returns the target of a type and a name, or nil. It tries the plural of the key first, then all others.
func (t *targets) targetNamed(typ string, key event.Key) *iam.Target {
	if target := t.targetAt(typ, key); target != nil {
		return target
	}
	for key.GroupResource = range t.told {
		if target := t.targetAt(typ, key); target != nil {
			return target
		}
	}
	return nil
}

// targetAt returns the target of a key if its kind is observed and has the type, or nil.
func (t *targets) targetAt(typ string, key event.Key) *iam.Target {
	if is := t.told[key.GroupResource]; !is.observed || is.typ != typ {
		return nil
	}
	o, _ := t.objects.Get(key)
	return targetOf(o.Value)
}
