package world

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// Change makes one random change.
func (w *World) Change() {
	switch w.Random.IntN(19) {
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
	case 16:
		if t := pick(w, slices.DeleteFunc(slices.Clone(w.Things), func(t *Thing) bool { return t.Type != Project })); t != nil {
			w.record(t)
		}
	case 14:
		w.judge(pick(w, w.Resources))
	case 15:
		w.edit(pick(w, w.Resources))
	default:
		for _, add := range []func(){w.addUser, w.addGroup, w.addMembership, w.addRole, w.addThing, w.addBinding} {
			add()
		}
	}
}

// judge records a random result of registration in a ProtectedResource: a registration, or that it has no room. Some
// results contradict what [iam.Register] would find.
func (w *World) judge(p *iamv1alpha1.ProtectedResource) {
	if p == nil {
		return
	}
	room := metav1.Condition{Type: iamv1alpha1.Registered, Status: metav1.ConditionTrue, Reason: iamv1alpha1.InForce}
	p.Status.Registered = nil
	switch w.Random.IntN(8) {
	case 0:
		room.Status, room.Reason = metav1.ConditionFalse, iamv1alpha1.LimitExceeded
	case 1:
		room.Status, room.Reason = metav1.ConditionFalse, iamv1alpha1.AlreadyRegistered
	default:
		record := &iamv1alpha1.Registration{Group: p.Spec.ServiceRef.Name, Kind: p.Spec.Kind, Plural: p.Spec.Plural, Generation: p.Generation}
		for _, ref := range p.Spec.ParentResources {
			if !w.one(4) {
				record.Parents = append(record.Parents, ref.APIGroup+"/"+ref.Kind)
			}
		}
		p.Status.Registered = record
	}
	meta.SetStatusCondition(&p.Status.Conditions, room)
}

// edit makes a ProtectedResource claim other permissions, another kind or another parent.
func (w *World) edit(p *iamv1alpha1.ProtectedResource) {
	if p == nil {
		return
	}
	p.Generation++
	switch w.Random.IntN(3) {
	case 0:
		p.Spec.Permissions = w.verbs()
	case 1:
		kind := pick(w, kindsOfWorlds())
		p.Spec.ServiceRef.Name, p.Spec.Kind, _ = strings.Cut(kind.typ, "/")
		p.Spec.Plural = kind.plural
	default:
		group, kind, _ := strings.Cut(pick(w, kindsOfWorlds()).typ, "/")
		p.Spec.ParentResources = append(p.Spec.ParentResources[len(p.Spec.ParentResources)/2:], iamv1alpha1.ParentResourceRef{APIGroup: group, Kind: kind})
	}
}

// recreate replaces an object by a new one of the same name.
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

// deleting marks an object as in deletion.
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
