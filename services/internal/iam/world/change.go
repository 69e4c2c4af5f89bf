package world

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// Change does something to the world.
func (w *World) Change() {
	switch w.Random.IntN(18) {
	case 0:
		w.Bindings = drop(w, w.Bindings)
	case 1:
		if b := pick(w, w.Bindings); b != nil {
			b.Spec.Subjects = w.subjects()
		}
	case 2:
		w.Roles = drop(w, w.Roles)
	case 3:
		if r := pick(w, w.Roles); r != nil {
			r.Spec.IncludedPermissions = append(r.Spec.IncludedPermissions[:len(r.Spec.IncludedPermissions)/2], w.permission())
		}
	case 4:
		w.Memberships = drop(w, w.Memberships)
	case 5:
		w.Users = drop(w, w.Users)
	case 6:
		w.Groups = drop(w, w.Groups)
	case 7:
		w.Things = drop(w, w.Things)
	case 8:
		w.Resources = drop(w, w.Resources)
	case 9:
		if u := pick(w, w.Users); u != nil {
			u.Status.State = pick(w, []iamv1alpha1.ActivationState{iamv1alpha1.Active, iamv1alpha1.Active, iamv1alpha1.Inactive})
		}
	case 10:
		w.deleting()
	case 11:
		w.addResource(pick(w, kindsOfWorlds()))
	case 12, 13:
		w.recreate()
	case 14:
		w.judge(pick(w, w.Resources))
	case 15:
		if p := pick(w, w.Resources); p != nil {
			p.Generation++
			p.Spec.Permissions = w.verbs()
		}
	default:
		for _, add := range []func(){w.addUser, w.addGroup, w.addMembership, w.addRole, w.addThing, w.addBinding} {
			add()
		}
	}
}

// judge has been said of a ProtectedResource at some time: whether the kind is its own, or a parent is refused.
func (w *World) judge(p *iamv1alpha1.ProtectedResource) {
	if p == nil {
		return
	}
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: iamv1alpha1.Registered, Status: pick(w, []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse}),
		Reason: pick(w, []string{iamv1alpha1.IAMSystemConfigured, iamv1alpha1.ParentCycle}), ObservedGeneration: p.Generation,
	})
}

// recreate makes something anew, under its old name.
func (w *World) recreate() {
	u, g, t := pick(w, w.Users), pick(w, w.Groups), pick(w, w.Things)
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
func (w *World) deleting() {
	switch w.Random.IntN(8) {
	case 0:
		doom(pick(w, w.Bindings))
	case 1:
		doom(pick(w, w.Roles))
	case 2:
		doom(pick(w, w.Users))
	case 3:
		doom(pick(w, w.Accounts))
	case 4:
		doom(pick(w, w.Groups))
	case 5:
		doom(pick(w, w.Memberships))
	case 6:
		doom(pick(w, w.Resources))
	default:
		doom(pick(w, w.Things))
	}
}

func doom[T any, P interface {
	*T
	metav1.Object
}](o P) {
	if o != nil {
		o.SetDeletionTimestamp(new(metav1.Now()))
	}
}

func drop[T any](w *World, from []T) []T {
	if len(from) == 0 {
		return nil
	}
	i := w.Random.IntN(len(from))
	return slices.Delete(slices.Clone(from), i, i+1)
}
