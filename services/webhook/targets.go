package webhook

import (
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/informer"
)

// observedTargets holds the objects that the watcher follows because their kinds are registered.
type observedTargets struct {
	objects *informer.Lister[metav1.PartialObjectMetadata]
	// told holds the last observation of each resource. A kind whose plural has changed can be present under both
	// names.
	told map[event.GroupResource]kindObservation
	// observed maps each followed type to whether its objects are in namespaces. Each change replaces the map, so
	// readers need no lock.
	observed atomic.Pointer[map[string]bool]
}

// kindObservation is an observation of a kind: its type, whether its objects are followed, and whether they are in namespaces.
type kindObservation struct {
	typ                  string
	observed, namespaced bool
}

// registerTargets registers the table of targets and the callback for observations.
func (s *indexState) registerTargets(cluster string) {
	s.targets.objects, s.targets.told = informer.RegisterTargetLister[metav1.PartialObjectMetadata](s.view, nil), map[event.GroupResource]kindObservation{}
	s.targets.observed.Store(&map[string]bool{})
	s.view.OnTargetKindChange(func(kind event.GroupResource) { s.applyObservation(kind, s.view.TargetKindStatus(cluster, kind)) })
}

// isNamespacedType reports whether objects of a type are in namespaces. observed is false for types that are not followed.
func (t *observedTargets) isNamespacedType(typ string) (namespaced, observed bool) {
	namespaced, observed = (*t.observed.Load())[typ]
	return namespaced, observed
}

// applyObservation applies an observation of a kind to the index. Objects of a kind that is not observed count as absent.
func (s *indexState) applyObservation(kind event.GroupResource, is informer.TargetKindStatus) {
	was, now := s.targets.told[kind], kindObservation{iam.OpenFGAType(kind.Group, is.Kind), is.Observed, is.Observed && is.Namespaced}
	if is.Kind == "" {
		now.typ = was.typ
	}
	if now.typ == "" || isIAMType(now.typ) || now == was { // The tables of IAM kinds feed the index themselves.
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
	x.SetTypeObserved(was.typ, false)
	for _, key := range s.targets.objects.Keys() {
		if key.GroupResource == kind {
			for _, typ := range types {
				s.setIndexTarget(x, typ, key)
			}
		}
	}
	for _, typ := range types {
		_, observed := s.targets.isNamespacedType(typ)
		x.SetTypeObserved(typ, observed)
		if s.trust { // Otherwise no type is trusted.
			x.RefreshTypeTrust(typ)
		}
	}
}

// setIndexTarget sets the target of a name in the index, for the current or an earlier type of its kind. The target is nil
// if no observed kind has that type.
func (s *indexState) setIndexTarget(x *authz.Index, typ string, key event.Key) {
	if typ != "" {
		x.SetTarget(typ, key.Namespace, key.Name, s.targets.findTarget(typ, key))
	}
}

// findTarget returns the target of a type and a name, or nil. It tries the plural of the key first, then all others.
func (t *observedTargets) findTarget(typ string, key event.Key) *iam.BindingTarget {
	if target := t.observedTargetAt(typ, key); target != nil {
		return target
	}
	for key.GroupResource = range t.told {
		if target := t.observedTargetAt(typ, key); target != nil {
			return target
		}
	}
	return nil
}

// observedTargetAt returns the target of a key if its kind is observed and has the type, or nil.
func (t *observedTargets) observedTargetAt(typ string, key event.Key) *iam.BindingTarget {
	if is := t.told[key.GroupResource]; !is.observed || is.typ != typ {
		return nil
	}
	o, _ := t.objects.Get(key)
	return targetOfObject(o.Value)
}
