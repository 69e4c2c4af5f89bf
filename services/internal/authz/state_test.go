package authz

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/iam/world"
)

// receivedObjects holds copies of the objects that an index has received, by kind and name.
type receivedObjects map[string]metav1.Object

// tell sets every changed object in the index, in random order, and returns the new copies.
func (before receivedObjects) tell(r *rand.Rand, x *Index, w *world.World) receivedObjects {
	now := receivedObjects{}
	note(now, w.Resources, func(o *iamv1alpha1.ProtectedResource) any { return o.DeepCopy() })
	note(now, w.Roles, func(o *iamv1alpha1.Role) any { return o.DeepCopy() })
	note(now, w.Bindings, func(o *iamv1alpha1.PolicyBinding) any { return o.DeepCopy() })
	note(now, w.Users, func(o *iamv1alpha1.User) any { return o.DeepCopy() })
	note(now, w.Accounts, func(o *iamv1alpha1.ServiceAccount) any { return o.DeepCopy() })
	note(now, w.Groups, func(o *iamv1alpha1.Group) any { return o.DeepCopy() })
	note(now, w.Memberships, func(o *iamv1alpha1.GroupMembership) any { return o.DeepCopy() })
	note(now, w.Targets, func(o *world.TargetObject) any {
		return &world.TargetObject{ObjectMeta: *o.ObjectMeta.DeepCopy(), Type: o.Type, Organization: o.Organization, Recorded: o.Recorded}
	})
	var changes []func()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if o := now[name]; !reflect.DeepEqual(o, before[name]) {
			changes = append(changes, func() { set(x, o, o) })
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if o := before[name]; now[name] == nil {
			changes = append(changes, func() { set(x, o, nil) })
		}
	}
	r.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	for _, change := range changes {
		change()
	}
	return now
}

func note[T any](in receivedObjects, objects []T, copied func(T) any) {
	for _, o := range objects {
		c, _ := copied(o).(metav1.Object)
		name := fmt.Sprintf("%T %s/%s", o, c.GetNamespace(), c.GetName())
		if thing, ok := c.(*world.TargetObject); ok {
			name += thing.Type
		}
		in[name] = c
	}
}

// set sets the object in the index to the state now, which is nil after a deletion.
func set(x *Index, o, now metav1.Object) {
	namespace, name := o.GetNamespace(), o.GetName()
	switch o := o.(type) {
	case *iamv1alpha1.ProtectedResource:
		x.SetProtectedResource(name, as(o, now))
	case *iamv1alpha1.Role:
		x.SetRole(namespace, name, as(o, now))
	case *iamv1alpha1.PolicyBinding:
		x.SetBinding(namespace, name, as(o, now))
	case *iamv1alpha1.User:
		x.SetUser(name, as(o, now))
	case *iamv1alpha1.ServiceAccount:
		x.SetServiceAccount(name, as(o, now))
	case *iamv1alpha1.Group:
		x.SetGroup(namespace, name, as(o, now))
	case *iamv1alpha1.GroupMembership:
		x.SetMembership(namespace, name, as(o, now))
	case *world.TargetObject:
		x.SetTarget(o.Type, namespace, name, targetOf(as(o, now)))
	}
}

func as[T any](_ *T, now metav1.Object) *T {
	o, _ := any(now).(*T)
	return o
}

func targetOf(t *world.TargetObject) *iam.BindingTarget {
	if t == nil {
		return nil
	}
	target, alive := iam.TargetOfObject(&t.ObjectMeta)
	if p := t.AsProject(); p != nil {
		target, alive = iam.TargetOfProject(p)
	}
	if !alive {
		return nil
	}
	return &target
}
