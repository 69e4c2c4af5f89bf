package webhook

import (
	"fmt"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// indexState holds the index and the tables that feed it. Bindings and Users are the most numerous kinds, so only the index
// holds them.
type indexState struct {
	view *informer.Informer
	// shown is the index that serves queries. It is nil while the informer reloads. made receives the changes, and
	// becomes shown when the reload ends.
	shown   atomic.Pointer[authz.Index]
	made    *authz.Index
	stores  *informer.Lister[corev1alpha1.Store]
	kinds   map[event.GroupResource]kindFeed
	targets observedTargets
	// trust lets bindings act on objects of kinds that are not followed.
	trust bool
}

// kindFeed holds the functions of one kind that the index receives.
type kindFeed struct {
	// tell copies one object from the table to the index, tellAll all of them. Both are nil for a [registerStreamedKind], which has no
	// table.
	tell    func(x *authz.Index, key event.Key)
	tellAll func(x *authz.Index)
	// expect returns a function that reports whether the index holds an object as the API server has it, or newer. A
	// nil object means that it must be gone.
	expect func(key event.Key, object []byte) (look func() (bool, error), err error)
}

// newIndexState makes an informer with its tables. An object that cannot be decoded counts as empty, so it gives no
// access.
func newIndexState(cfg informer.Config, trust bool) *indexState {
	cfg.KeepUndecodable = true
	v := informer.New(cfg)
	s := &indexState{
		view: v, stores: informer.RegisterLister[corev1alpha1.Store](v, kinds.Stores(), nil),
		kinds: map[event.GroupResource]kindFeed{}, trust: trust,
	}
	registerKind(s, kinds.ProtectedResources(), func(x *authz.Index, k event.Key, o *iamv1alpha1.ProtectedResource) {
		x.SetProtectedResource(k.Name, o)
	})
	registerKind(s, kinds.IAMRoles(), func(x *authz.Index, k event.Key, o *iamv1alpha1.Role) { x.SetRole(k.Namespace, k.Name, o) })
	registerStreamedKind(s, kinds.PolicyBindings(), func(x *authz.Index, k event.Key, o *iamv1alpha1.PolicyBinding) { x.SetBinding(k.Namespace, k.Name, o) },
		(*authz.Index).IsBindingUpToDate)
	registerKind(s, kinds.IAMGroups(), func(x *authz.Index, k event.Key, o *iamv1alpha1.Group) { x.SetGroup(k.Namespace, k.Name, o) })
	registerKind(s, kinds.GroupMemberships(), func(x *authz.Index, k event.Key, o *iamv1alpha1.GroupMembership) {
		x.SetMembership(k.Namespace, k.Name, o)
	})
	registerStreamedKind(s, kinds.IAMUsers(), func(x *authz.Index, k event.Key, o *iamv1alpha1.User) { x.SetUser(k.Name, o) }, (*authz.Index).IsUserUpToDate)
	registerKind(s, kinds.IAMServiceAccounts(), func(x *authz.Index, k event.Key, o *iamv1alpha1.ServiceAccount) { x.SetServiceAccount(k.Name, o) })
	registerKind(s, kinds.Organizations(), func(*authz.Index, event.Key, *resourcemanagerv1alpha1.Organization) {})
	registerKind(s, kinds.Projects(), func(*authz.Index, event.Key, *resourcemanagerv1alpha1.Project) {})
	s.registerTargets(cfg.Cluster)
	v.OnReset(s.startNewIndex)
	v.OnChange(s.applyChange)
	v.OnLoaded(s.fillAndPublishIndex)
	return s
}

// isTrustedType reports whether bindings act on objects of a type although the watcher does not follow them.
func (s *indexState) isTrustedType(typ string) bool {
	_, observed := s.targets.isNamespacedType(typ)
	return s.trust && !observed && !isIAMType(typ)
}

// isIAMType reports whether a type is a kind of IAM.
func isIAMType(typ string) bool {
	return slices.ContainsFunc(kinds.IAMKinds(), func(k kinds.Kind) bool { return typeOfKind(k) == typ })
}

func typeOfKind(kind kinds.Kind) string { return iam.OpenFGAType(kind.Group, kind.Kind) }

// declaredObject is a pointer to an object of a kind.
type declaredObject[T any] interface {
	*T
	metav1.Object
}

// registerKind registers the table of a kind. Each object goes to the index twice: with its content, and as a possible target
// of bindings.
func registerKind[T any, P declaredObject[T]](s *indexState, kind kinds.Kind, set func(*authz.Index, event.Key, *T)) {
	table := informer.RegisterLister[T](s.view, kind, nil)
	tell := func(x *authz.Index, key event.Key, o *T) {
		set(x, key, o)
		x.SetTarget(typeOfKind(kind), key.Namespace, key.Name, targetOfObject[T, P](o))
	}
	s.kinds[kind.GroupResource] = kindFeed{
		tell: func(x *authz.Index, key event.Key) {
			o, _ := table.Get(key)
			tell(x, key, o.Value)
		},
		tellAll: func(x *authz.Index) {
			for _, o := range table.All() {
				tell(x, o.Key, o.Value)
			}
		},
		expect: func(key event.Key, object []byte) (func() (bool, error), error) {
			if object == nil {
				return func() (bool, error) {
					_, live := getAfterCallbacks(s, table, key)
					return !live, nil
				}, nil
			}
			want, err := newExpectedObject[T](kind, object)
			return func() (bool, error) {
				o, live := getAfterCallbacks(s, table, key)
				return live && want.isSatisfiedByObject(o.Change, o.Value), nil
			}, err
		},
	}
}

// registerStreamedKind registers a kind without a table. Each change goes to the index directly. The function says compares an object
// with the index, because nothing else holds its content.
func registerStreamedKind[T any, P declaredObject[T]](s *indexState, kind kinds.Kind, set func(*authz.Index, event.Key, *T), says func(*authz.Index, *T) bool) {
	objects := informer.RegisterForwarder(s.view, kind, func(c event.Change, o *T) {
		if o != nil && string(P(o).GetUID()) == c.UID {
			P(o).SetUID(types.UID(c.UID)) // Both then share one string.
		}
		set(s.made, c.Key, o)
		s.made.SetTarget(typeOfKind(kind), c.Key.Namespace, c.Key.Name, targetOfObject[T, P](o))
	})
	s.kinds[kind.GroupResource] = kindFeed{expect: func(key event.Key, object []byte) (func() (bool, error), error) {
		want, now, err := &expectedObject{}, new(T), error(nil)
		if object != nil {
			if want, err = newExpectedObject[T](kind, object); err == nil {
				err = event.DecodeObject(object, now)
			}
		}
		return func() (has bool, err error) {
			s.view.RunBetweenChanges(func() {
				c, live := objects.Get(key)
				x := s.shown.Load()
				has = x != nil && live == (object != nil) && (!live || want.isSatisfiedByChange(c, func() bool { return says(x, now) }))
			})
			return has, nil
		}, err
	}}
}

// targetOfObject returns the target of an object, or nil if the object does not exist or is being deleted.
func targetOfObject[T any, P declaredObject[T]](o *T) *iam.BindingTarget {
	if o == nil {
		return nil
	}
	var target iam.BindingTarget
	var alive bool
	if p, ok := any(o).(*resourcemanagerv1alpha1.Project); ok {
		target, alive = iam.TargetOfProject(p)
	} else {
		target, alive = iam.TargetOfObject(&metav1.ObjectMeta{
			Namespace: P(o).GetNamespace(), UID: P(o).GetUID(), OwnerReferences: P(o).GetOwnerReferences(), DeletionTimestamp: P(o).GetDeletionTimestamp(),
		})
	}
	if !alive {
		return nil
	}
	return &target
}

// currentIndex returns the index, or an error while the informer reloads.
func (s *indexState) currentIndex() (*authz.Index, error) {
	if x := s.shown.Load(); x != nil {
		return x, nil
	}
	return nil, fault.Unavailable(fmt.Errorf("%w: the stream of changes is being read", informer.ErrIncomplete))
}

// startNewIndex starts a new index when the informer reloads, because objects may be gone. Only queries that already
// hold the old index still use it.
func (s *indexState) startNewIndex() {
	s.shown.Store(nil)
	s.made = authz.New(s.isTrustedType)
	for _, kind := range kinds.IAMKinds() {
		s.made.SetTypeObserved(typeOfKind(kind), true)
	}
}

// applyChange copies one changed object to the index.
func (s *indexState) applyChange(key event.Key) {
	x := s.shown.Load()
	switch kind := s.kinds[key.GroupResource]; {
	case x == nil:
	case key.Target:
		s.setIndexTarget(x, s.targets.told[key.GroupResource].typ, key)
	case kind.tell != nil:
		kind.tell(x, key)
	}
}

// fillAndPublishIndex copies all tables to the new index and publishes it.
func (s *indexState) fillAndPublishIndex() {
	s.made.BulkLoad(func() {
		for _, kind := range s.kinds {
			if kind.tellAll != nil {
				kind.tellAll(s.made)
			}
		}
		for _, key := range s.targets.objects.Keys() {
			s.setIndexTarget(s.made, s.targets.told[key.GroupResource].typ, key)
		}
		for typ := range *s.targets.observed.Load() {
			s.made.SetTypeObserved(typ, true)
		}
	})
	s.shown.Store(s.made)
}
