package iam

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// request is a question as the API server asks it.
type request struct {
	user, account   string
	groups          []string
	permission      string
	typ             string
	namespace, name string
}

// ask makes a request, most likely one that a binding is about.
func (w *world) ask() request {
	q := request{permission: w.permission(), typ: pick(w, kindsOfWorlds()).typ, namespace: w.namespace(), name: pick(w, []string{"", "x", "y", "q"})}
	if b := pick(w, w.bindings); b != nil && !w.one(10) {
		w.askAbout(&q, b)
	}
	if t := pick(w, w.things); t != nil && w.one(8) {
		q.typ, q.namespace, q.name = t.typ, t.Namespace, t.Name
	}
	if w.one(2) {
		q.groups = append(q.groups, pick(w, tokenGroups()), "a", "uid-1")
	}
	if kind := find(kindsOfWorlds(), func(k kindOf) bool { return k.typ == q.typ }); !kind.namespaced {
		q.namespace = ""
	}
	return q
}

func (w *world) askAbout(q *request, b *iamv1alpha1.PolicyBinding) {
	switch s := pick(w, b.Spec.Subjects); {
	case s.Kind == "User":
		q.user = s.Name
	case s.Kind == "ServiceAccount":
		q.account = s.UID
	case strings.Contains(s.Name, ":"):
		q.groups = append(q.groups, s.Name)
	default:
		q.user = pick(w, []string{"alice", "bob", "carol", "dave:x y"})
	}
	if r := find(w.roles, func(r *iamv1alpha1.Role) bool {
		return r.Name == b.Spec.RoleRef.Name && r.Namespace == cmp.Or(b.Spec.RoleRef.Namespace, b.Namespace)
	}); r != nil && len(r.Spec.IncludedPermissions) > 0 {
		q.permission = pick(w, r.Spec.IncludedPermissions)
	}
	kind := find(kindsOfWorlds(), func(k kindOf) bool { return strings.Contains(q.permission, "/"+k.plural) })
	q.typ = kind.typ
	on := b.Spec.ResourceSelector.ResourceRef
	if on == nil {
		on = &iamv1alpha1.ResourceReference{APIGroup: b.Spec.ResourceSelector.ResourceKind.APIGroup, Kind: b.Spec.ResourceSelector.ResourceKind.Kind}
	}
	q.namespace, q.name = cmp.Or(on.Namespace, q.namespace), on.Name
	if w.one(3) { // As at the endpoint of a project: a permission of what is below.
		q.typ = Type(on.APIGroup, on.Kind)
	} else if t := w.below(q.typ, on); t != nil {
		q.namespace, q.name = t.Namespace, t.Name
	}
}

// below is an object of a kind that most likely belongs to another, or is in that namespace.
func (w *world) below(typ string, on *iamv1alpha1.ResourceReference) *thing {
	all := slices.DeleteFunc(slices.Clone(w.things), func(t *thing) bool { return t.typ != typ })
	near := slices.DeleteFunc(slices.Clone(all), func(t *thing) bool {
		return t.Namespace != on.Name && !slices.ContainsFunc(t.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == on.Kind && (on.Name == "" || o.Name == on.Name) })
	})
	if len(near) > 0 && !w.one(5) {
		return pick(w, near)
	}
	return pick(w, all)
}
