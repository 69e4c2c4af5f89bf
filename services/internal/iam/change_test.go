package iam

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// change does something to the world.
func (w *world) change() {
	switch w.IntN(16) {
	case 0:
		w.bindings = drop(w, w.bindings)
	case 1:
		if b := pick(w, w.bindings); b != nil {
			b.Spec.Subjects = w.subjects()
		}
	case 2:
		w.roles = drop(w, w.roles)
	case 3:
		if r := pick(w, w.roles); r != nil {
			r.Spec.IncludedPermissions = append(r.Spec.IncludedPermissions[:len(r.Spec.IncludedPermissions)/2], w.permission())
		}
	case 4:
		w.memberships = drop(w, w.memberships)
	case 5:
		w.users = drop(w, w.users)
	case 6:
		w.groups = drop(w, w.groups)
	case 7:
		w.things = drop(w, w.things)
	case 8:
		w.resources = drop(w, w.resources)
	case 9:
		if u := pick(w, w.users); u != nil {
			u.Status.State = pick(w, []iamv1alpha1.ActivationState{iamv1alpha1.Active, iamv1alpha1.Inactive})
		}
	case 10:
		w.deleting()
	case 11:
		w.addResource(pick(w, kindsOfWorlds()))
	case 12, 13:
		w.recreate()
	default:
		for _, add := range []func(){w.addUser, w.addGroup, w.addMembership, w.addRole, w.addThing, w.addBinding} {
			add()
		}
	}
}

// recreate makes something anew, under its old name.
func (w *world) recreate() {
	u, g, t := pick(w, w.users), pick(w, w.groups), pick(w, w.things)
	switch {
	case u != nil && w.one(2):
		u.ObjectMeta = w.meta("", u.Name)
	case g != nil && w.one(2):
		g.ObjectMeta = w.meta(g.Namespace, g.Name)
	case t != nil:
		t.ObjectMeta = w.meta(t.Namespace, t.Name)
	}
}

// deleting begins the deletion of something.
func (w *world) deleting() {
	now := new(metav1.Now())
	switch w.IntN(4) {
	case 0:
		if b := pick(w, w.bindings); b != nil {
			b.DeletionTimestamp = now
		}
	case 1:
		if r := pick(w, w.roles); r != nil {
			r.DeletionTimestamp = now
		}
	case 2:
		if u := pick(w, w.users); u != nil {
			u.DeletionTimestamp = now
		}
	default:
		if t := pick(w, w.things); t != nil {
			t.DeletionTimestamp = now
		}
	}
}

func drop[T any](w *world, from []T) []T {
	if len(from) == 0 {
		return nil
	}
	i := w.IntN(len(from))
	return slices.Delete(slices.Clone(from), i, i+1)
}
