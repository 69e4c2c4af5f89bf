package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
)

// state is what answers are made of: an index, and the tables of what it is told of.
type state struct {
	view   *view.View
	index  atomic.Pointer[decide.Index]
	stores *view.Table[corev1alpha1.Store]
	kinds  map[event.GroupResource]followed
	// trust says whether bindings act on objects of kinds that are not followed.
	trust bool
}

// followed is a kind that the index is told of.
type followed struct {
	// tell tells of one object as it is, tellAll of all.
	tell    func(x *decide.Index, key event.Key)
	tellAll func(x *decide.Index)
	// has says whether the table holds an object as the API server has it, or newer; nil if there is none.
	has func(key event.Key, object []byte) (bool, error)
}

// newState declares the tables in v.
func newState(v *view.View, trust bool) *state {
	s := &state{view: v, stores: view.Register[corev1alpha1.Store](v, kinds.Stores(), nil), kinds: map[event.GroupResource]followed{}, trust: trust}
	s.index.Store(s.newIndex())
	follow(s, kinds.ProtectedResources(), func(x *decide.Index, k event.Key, o *iamv1alpha1.ProtectedResource) {
		x.SetProtectedResource(k.Name, o)
	})
	follow(s, kinds.IAMRoles(), func(x *decide.Index, k event.Key, o *iamv1alpha1.Role) { x.SetRole(k.Namespace, k.Name, o) })
	follow(s, kinds.PolicyBindings(), func(x *decide.Index, k event.Key, o *iamv1alpha1.PolicyBinding) { x.SetBinding(k.Namespace, k.Name, o) })
	follow(s, kinds.Groups(), func(x *decide.Index, k event.Key, o *iamv1alpha1.Group) { x.SetGroup(k.Namespace, k.Name, o) })
	follow(s, kinds.GroupMemberships(), func(x *decide.Index, k event.Key, o *iamv1alpha1.GroupMembership) {
		x.SetMembership(k.Namespace, k.Name, o)
	})
	follow(s, kinds.Users(), func(x *decide.Index, k event.Key, o *iamv1alpha1.User) { x.SetUser(k.Name, o) })
	follow(s, kinds.IAMServiceAccounts(), func(x *decide.Index, k event.Key, o *iamv1alpha1.ServiceAccount) { x.SetServiceAccount(k.Name, o) })
	follow(s, kinds.Organizations(), func(x *decide.Index, k event.Key, o *resourcemanagerv1alpha1.Organization) {
		var target iam.Target
		alive := o != nil
		if alive {
			target, alive = iam.TargetOfObject(&o.ObjectMeta)
		}
		setTarget(x, kinds.Organizations(), k, target, alive)
	})
	follow(s, kinds.Projects(), func(x *decide.Index, k event.Key, o *resourcemanagerv1alpha1.Project) {
		var target iam.Target
		alive := o != nil
		if alive {
			target, alive = iam.TargetOfProject(o)
		}
		setTarget(x, kinds.Projects(), k, target, alive)
	})
	v.OnChange(s.changed)
	v.OnLoad(s.loaded)
	return s
}

func (s *state) newIndex() *decide.Index {
	return decide.New(func(typ string) bool {
		return s.trust && typ != typeOf(kinds.Organizations()) && typ != typeOf(kinds.Projects())
	})
}

func typeOf(kind kinds.Kind) string { return iam.Type(kind.Group, kind.Kind) }

// follow declares the table of a kind, and how the index is told of it.
func follow[T any](s *state, kind kinds.Kind, set func(*decide.Index, event.Key, *T)) {
	table := view.Register[T](s.view, kind, nil)
	s.kinds[kind.GroupResource] = followed{
		tell: func(x *decide.Index, key event.Key) {
			o, _ := table.Get(key)
			set(x, key, o.Value)
		},
		tellAll: func(x *decide.Index) {
			for _, o := range table.All() {
				set(x, o.Key, o.Value)
			}
		},
		has: func(key event.Key, object []byte) (bool, error) {
			o, live := table.Get(key)
			if object == nil || !live {
				return !live && object == nil, nil
			}
			return sameOrNewer(o, object)
		},
	}
}

func setTarget(x *decide.Index, kind kinds.Kind, k event.Key, target iam.Target, alive bool) {
	told := &target
	if !alive {
		told = nil
	}
	x.SetTarget(typeOf(kind), k.Namespace, k.Name, told)
}

// changed tells the index of one object.
func (s *state) changed(key event.Key) {
	if kind, ok := s.kinds[key.GroupResource]; ok {
		kind.tell(s.index.Load(), key)
	}
}

// loaded makes the index anew: objects may have vanished.
func (s *state) loaded() {
	x := s.newIndex()
	for _, kind := range s.kinds {
		kind.tellAll(x)
	}
	s.index.Store(x)
}

// sameOrNewer compares what the view holds with what the API server has. The watcher leaves out
// changes without a meaning, so that another version may say the same.
func sameOrNewer[T any](held view.Object[T], object []byte) (bool, error) {
	var meta metav1.PartialObjectMetadata
	now := new(T)
	if err := json.Unmarshal(object, &meta); err != nil {
		return false, fmt.Errorf("decode metadata of %s: %w", held.Key, err)
	}
	if string(meta.UID) != held.UID {
		return false, nil
	}
	if !(event.Change{Epoch: held.Epoch, ResourceVersion: meta.ResourceVersion}).NewerThan(held.Change) {
		return true, nil
	}
	if err := json.Unmarshal(object, now); err != nil {
		return false, fmt.Errorf("decode %s: %w", held.Key, err)
	}
	return equality.Semantic.DeepEqual(said(now), said(held.Value)), nil
}

// said is an object without what changes with every write.
func said[T any](object *T) any {
	o, ok := any(object).(interface {
		DeepCopy() *T
	})
	if !ok {
		return object
	}
	copied := o.DeepCopy()
	if m, ok := any(copied).(metav1.Object); ok {
		m.SetResourceVersion("")
		m.SetManagedFields(nil)
		m.SetAnnotations(nil)
		m.SetLabels(nil)
	}
	return copied
}

const (
	// patience is how long an object is waited for that the API server has.
	patience = 2 * time.Second
	// attention is how often it is looked for.
	attention = 5 * time.Millisecond
)

// await waits until the index was told of an object as the API server has it; nil if there is none.
func (s *state) await(ctx context.Context, key event.Key, object []byte) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var has bool
		var err error
		s.view.Between(func() { has, err = s.kinds[key.GroupResource].has(key, object) })
		if has || err != nil {
			return err
		}
		if !backoff.Sleep(ctx, attention) {
			return fmt.Errorf("%w: it does not hold %s as the API server has it", view.ErrIncomplete, key)
		}
	}
}
