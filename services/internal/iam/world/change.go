package world

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// ChangeRandomly makes one random change.
func (w *World) ChangeRandomly() {
	switch w.Random.IntN(19) {
	case 0:
		w.Bindings = dropRandom(w, w.Bindings)
	case 1:
		if b := pickRandom(w, w.Bindings); b != nil {
			b.Spec.Subjects = w.randomSubjects()
		}
	case 2:
		w.Roles = dropRandom(w, w.Roles)
	case 3:
		if r := pickRandom(w, w.Roles); r != nil {
			r.Spec.IncludedPermissions = append(r.Spec.IncludedPermissions[:len(r.Spec.IncludedPermissions)/2], w.randomPermission())
		}
	case 4:
		w.Memberships = dropRandom(w, w.Memberships)
	case 5:
		w.Users = dropRandom(w, w.Users)
	case 6:
		w.Groups = dropRandom(w, w.Groups)
	case 7:
		w.Targets = dropRandom(w, w.Targets)
	case 8:
		w.Resources = dropRandom(w, w.Resources)
	case 9:
		if u := pickRandom(w, w.Users); u != nil {
			u.Status.State = pickRandom(w, []iamv1alpha1.ActivationState{iamv1alpha1.Active, iamv1alpha1.Active, iamv1alpha1.Inactive})
		}
	case 10:
		w.markRandomDeleting()
	case 11:
		w.addRandomResource(pickRandom(w, worldKinds()))
	case 12, 13:
		w.recreateRandomObject()
	case 16:
		if t := pickRandom(w, slices.DeleteFunc(slices.Clone(w.Targets), func(t *TargetObject) bool { return t.Type != Project })); t != nil {
			w.recordRandomOrganization(t)
		}
	case 14:
		w.recordRandomRegistration(pickRandom(w, w.Resources))
	case 15:
		w.editResourceRandomly(pickRandom(w, w.Resources))
	default:
		for _, add := range []func(){w.addRandomUser, w.addRandomGroup, w.addRandomMembership, w.addRandomRole, w.addRandomTarget, w.addRandomBinding} {
			add()
		}
	}
}

// recordRandomRegistration writes a random result of registration to the status of a ProtectedResource. Some results
// contradict the result that [iam.NewRegistry] would compute.
func (w *World) recordRandomRegistration(p *iamv1alpha1.ProtectedResource) {
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
			if !w.hasRandomChance(4) {
				record.Parents = append(record.Parents, ref.APIGroup+"/"+ref.Kind)
			}
		}
		p.Status.Registered = record
	}
	meta.SetStatusCondition(&p.Status.Conditions, room)
}

// editResourceRandomly makes a ProtectedResource claim other permissions, another kind or another parent.
func (w *World) editResourceRandomly(p *iamv1alpha1.ProtectedResource) {
	if p == nil {
		return
	}
	p.Generation++
	switch w.Random.IntN(3) {
	case 0:
		p.Spec.Permissions = w.randomVerbs()
	case 1:
		kind := pickRandom(w, worldKinds())
		p.Spec.ServiceRef.Name, p.Spec.Kind, _ = strings.Cut(kind.typ, "/")
		p.Spec.Plural = kind.plural
	default:
		group, kind, _ := strings.Cut(pickRandom(w, worldKinds()).typ, "/")
		p.Spec.ParentResources = append(p.Spec.ParentResources[len(p.Spec.ParentResources)/2:], iamv1alpha1.ParentResourceRef{APIGroup: group, Kind: kind})
	}
}

// recreateRandomObject replaces an object by a new one with the same name.
func (w *World) recreateRandomObject() {
	u, g, t := pickRandom(w, w.Users), pickRandom(w, w.Groups), pickRandom(w, w.Targets)
	switch {
	case u != nil && w.hasRandomChance(2):
		u.ObjectMeta = w.newMeta("", u.Name)
	case g != nil && w.hasRandomChance(2):
		g.ObjectMeta = w.newMeta(g.Namespace, g.Name)
	case t != nil:
		t.ObjectMeta = w.newMeta(t.Namespace, t.Name)
	}
}

// markRandomDeleting marks an object as in deletion.
func (w *World) markRandomDeleting() {
	switch w.Random.IntN(8) {
	case 0:
		setDeleting(pickRandom(w, w.Bindings))
	case 1:
		setDeleting(pickRandom(w, w.Roles))
	case 2:
		setDeleting(pickRandom(w, w.Users))
	case 3:
		setDeleting(pickRandom(w, w.Accounts))
	case 4:
		setDeleting(pickRandom(w, w.Groups))
	case 5:
		setDeleting(pickRandom(w, w.Memberships))
	case 6:
		setDeleting(pickRandom(w, w.Resources))
	default:
		setDeleting(pickRandom(w, w.Targets))
	}
}

func setDeleting[T any, P interface {
	*T
	metav1.Object
}](o P) {
	if o != nil {
		o.SetDeletionTimestamp(new(metav1.Now()))
	}
}

func dropRandom[T any](w *World, from []T) []T {
	if len(from) == 0 {
		return nil
	}
	i := w.Random.IntN(len(from))
	return slices.Delete(slices.Clone(from), i, i+1)
}
