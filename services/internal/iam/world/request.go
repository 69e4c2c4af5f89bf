package world

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// Request is one authorization request of the API server.
type Request struct {
	// User is a name and Account a UID. At most one is set.
	User, Account string
	Groups        []string
	// Name is empty for a request that names no object.
	Permission, Type, Namespace, Name string
	// RequireExists denies requests on an object that does not exist, as the endpoint of a project does.
	RequireExists bool
	// ParentType and ParentName name the parent in the request. Both may be empty.
	ParentType, ParentName string
}

// RandomRequest returns a random request, usually one that matches a binding.
func (w *World) RandomRequest() Request {
	q := Request{
		Permission: w.randomPermission(), Type: pickRandom(w, worldKinds()).typ, Namespace: w.randomNamespace(),
		Name: pickRandom(w, []string{"", "x", "y", "q"}),
	}
	if b := w.randomLikelyBinding(); b != nil && !w.hasRandomChance(10) {
		w.setRequestFromBinding(&q, b)
	}
	if t := pickRandom(w, w.Targets); t != nil && w.hasRandomChance(8) {
		q.Type, q.Namespace, q.Name = t.Type, t.Namespace, t.Name
	}
	if w.hasRandomChance(2) {
		q.Groups = append(q.Groups, pickRandom(w, TokenGroups()), "a", "uid-1")
	}
	if kind := FindFirst(worldKinds(), func(k worldKind) bool { return k.typ == q.Type }); !kind.namespaced {
		q.Namespace = ""
	}
	if q.Type == Project && q.Name != "" {
		q.RequireExists = w.hasRandomChance(2)
	}
	if t := pickRandom(w, w.Targets); t != nil && w.hasRandomChance(3) {
		q.ParentType, q.ParentName = t.Type, t.Name
	}
	return q
}

// randomLikelyBinding returns a binding, usually one whose role and target exist.
func (w *World) randomLikelyBinding() *iamv1alpha1.PolicyBinding {
	b := pickRandom(w, w.Bindings)
	for range 4 {
		if b != nil && b.DeletionTimestamp == nil && w.roleOf(b) != nil && w.hasTarget(b) {
			break
		}
		b = pickRandom(w, w.Bindings)
	}
	return b
}

// hasTarget reports whether the target of a binding exists. A whole kind always exists.
func (w *World) hasTarget(b *iamv1alpha1.PolicyBinding) bool {
	on := b.Spec.ResourceSelector.ResourceRef
	return on == nil || slices.ContainsFunc(w.Targets, func(t *TargetObject) bool { return string(t.UID) == on.UID })
}

// randomGrantedPermission returns a permission of a role, usually a registered one.
func (w *World) randomGrantedPermission(r *iamv1alpha1.Role) string {
	permission := pickRandom(w, r.Spec.IncludedPermissions)
	for range 2 {
		if w.isRegistered(permission) {
			break
		}
		permission = pickRandom(w, r.Spec.IncludedPermissions)
	}
	return permission
}

func (w *World) isRegistered(permission string) bool {
	return slices.ContainsFunc(w.Resources, func(p *iamv1alpha1.ProtectedResource) bool {
		verb, of := strings.CutPrefix(permission, p.Spec.ServiceRef.Name+"/"+p.Spec.Plural)
		return of && slices.Contains(p.Spec.Permissions, verb[1:])
	})
}

func (w *World) roleOf(b *iamv1alpha1.PolicyBinding) *iamv1alpha1.Role {
	return FindFirst(w.Roles, func(r *iamv1alpha1.Role) bool {
		return r.Name == b.Spec.RoleRef.Name && r.Namespace == cmp.Or(b.Spec.RoleRef.Namespace, b.Namespace)
	})
}

func (w *World) setRequestFromBinding(q *Request, b *iamv1alpha1.PolicyBinding) {
	switch s := pickRandom(w, b.Spec.Subjects); {
	case s.Kind == "User":
		q.User = s.Name
	case s.Kind == "ServiceAccount":
		q.Account = s.UID
	case strings.Contains(s.Name, ":"):
		q.Groups = append(q.Groups, s.Name)
	default:
		q.User = pickRandom(w, []string{"alice", "bob", "carol", "dave:x y"})
	}
	if r := w.roleOf(b); r != nil && len(r.Spec.IncludedPermissions) > 0 {
		q.Permission = w.randomGrantedPermission(r)
	}
	kind := FindFirst(worldKinds(), func(k worldKind) bool { return strings.Contains(q.Permission, "/"+k.plural) })
	q.Type = kind.typ
	on := b.Spec.ResourceSelector.ResourceRef
	if on == nil {
		on = &iamv1alpha1.ResourceReference{APIGroup: b.Spec.ResourceSelector.ResourceKind.APIGroup, Kind: b.Spec.ResourceSelector.ResourceKind.Kind}
	}
	q.Namespace, q.Name = cmp.Or(on.Namespace, q.Namespace), on.Name
	// The permission may belong to a kind below the object's kind, as in a request below the URL of a project.
	if w.hasRandomChance(3) {
		q.Type = cmp.Or(on.APIGroup, iamv1alpha1.CoreGroup) + "/" + on.Kind
	} else if t := w.randomTargetBelow(q.Type, on); t != nil {
		q.Namespace, q.Name = t.Namespace, t.Name
	}
}

// randomTargetBelow returns an object of a type, usually one that is owned by the target or is in a namespace with the
// target's name.
func (w *World) randomTargetBelow(typ string, on *iamv1alpha1.ResourceReference) *TargetObject {
	all := slices.DeleteFunc(slices.Clone(w.Targets), func(t *TargetObject) bool { return t.Type != typ })
	near := slices.DeleteFunc(slices.Clone(all), func(t *TargetObject) bool {
		return t.Namespace != on.Name && !slices.ContainsFunc(t.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.Kind == on.Kind && (on.Name == "" || o.Name == on.Name)
		})
	})
	if len(near) > 0 && !w.hasRandomChance(5) {
		return pickRandom(w, near)
	}
	return pickRandom(w, all)
}
