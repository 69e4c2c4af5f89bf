package iam

import (
	"cmp"
	"slices"
	"strings"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// Tuple is one of OpenFGA.
type Tuple struct{ User, Relation, Object string }

// Compare orders tuples.
func (t Tuple) Compare(other Tuple) int {
	return cmp.Or(cmp.Compare(t.Object, other.Object), cmp.Compare(t.Relation, other.Relation), cmp.Compare(t.User, other.User))
}

// TargetOf is the object of OpenFGA that a binding is on: one object, or the root of a kind.
func TargetOf(b *iamv1alpha1.PolicyBinding) string {
	selector := b.Spec.ResourceSelector
	switch {
	case selector.ResourceRef != nil:
		return Object(Type(selector.ResourceRef.APIGroup, selector.ResourceRef.Kind), selector.ResourceRef.Namespace, selector.ResourceRef.Name)
	case selector.ResourceKind != nil:
		return Root(Type(selector.ResourceKind.APIGroup, selector.ResourceKind.Kind))
	}
	return ""
}

// GrantIndex is the same for all bindings of one role to one target, whether or not they are there.
func GrantIndex(b *iamv1alpha1.PolicyBinding) string {
	return grantIndex(cmp.Or(b.Spec.RoleRef.Namespace, b.Namespace), b.Spec.RoleRef.Name, hashed(TargetOf(b)))
}

// IndexOfGrant is the same of a grant of the role.
func IndexOfGrant(r *iamv1alpha1.Role, grant string) string {
	_, target, _ := strings.Cut(grant, "/RoleBinding:")
	_, target, _ = strings.Cut(target, "/")
	return grantIndex(r.Namespace, r.Name, target)
}

func grantIndex(namespace, role, target string) string { return namespace + "/" + role + "/" + target }

// RoleOfBinding finds the role of a binding.
func (o *Objects) RoleOfBinding(b *iamv1alpha1.PolicyBinding) *iamv1alpha1.Role {
	return o.role(cmp.Or(b.Spec.RoleRef.Namespace, b.Namespace), b.Spec.RoleRef.Name)
}

// TargetReason says why there is nothing that a binding could be on, as [iamv1alpha1.TargetValid] tells it.
func (o *Objects) TargetReason(b *iamv1alpha1.PolicyBinding) string {
	selector := b.Spec.ResourceSelector
	target := TargetOf(b)
	switch {
	case selector.ResourceRef != nil:
		typ := Type(selector.ResourceRef.APIGroup, selector.ResourceRef.Kind)
		if _, ok := o.Registry.Kind(typ); !ok {
			return iamv1alpha1.ValidationFailed
		}
		found, ok := o.Target(target)
		switch {
		case ok:
		case o.Trusted != nil && o.Trusted(typ):
			return ""
		default:
			return o.absence(typ, selector.ResourceRef.Namespace)
		}
		if found.UID != selector.ResourceRef.UID {
			return iamv1alpha1.TargetUIDMismatch
		}
		return ""
	case selector.ResourceKind != nil:
		if _, ok := o.Registry.Kind(Type(selector.ResourceKind.APIGroup, selector.ResourceKind.Kind)); ok {
			return ""
		}
	}
	return iamv1alpha1.ValidationFailed
}

// absence says why there is no target in a namespace.
func (o *Objects) absence(typ, namespace string) string {
	if o.Scope != nil {
		switch namespaced, followed := o.Scope(typ); {
		case !followed:
			return iamv1alpha1.TargetKindNotRecognized
		case namespaced && namespace == "":
			return iamv1alpha1.TargetNamespaceMissing
		}
	}
	return iamv1alpha1.TargetNotFound
}

// acts says whether a binding gives something to somebody: its role, its target and one subject are there.
func (o *Objects) acts(b *iamv1alpha1.PolicyBinding) bool {
	return b.DeletionTimestamp == nil && o.TargetReason(b) == "" && slices.ContainsFunc(b.Spec.Subjects, func(s iamv1alpha1.Subject) bool {
		subject, _ := o.Subject(s)
		return subject != ""
	})
}

// Wanted are the tuples that an object of IAM's types is to hold, sorted, each once.
func (o *Objects) Wanted(object string) []Tuple {
	typ, id, _ := strings.Cut(object, ":")
	var tuples []Tuple
	switch typ {
	case RoleType:
		if r := o.RoleOf(object); r != nil && r.DeletionTimestamp == nil {
			tuples = o.roleTuples(r)
		}
	case GroupType:
		if g := o.GroupOf(object); g != nil && g.DeletionTimestamp == nil {
			tuples = o.memberTuples(g)
		}
	case GrantType:
		role, target, _ := strings.Cut(id, "/")
		if r := o.RoleOf(RoleType + ":" + role); r != nil && r.DeletionTimestamp == nil {
			tuples = o.grantTuples(r, target, object)
		}
	default:
		tuples = o.targetTuples(typ, object)
	}
	slices.SortFunc(tuples, Tuple.Compare)
	return slices.Compact(tuples)
}

func (o *Objects) memberTuples(g *iamv1alpha1.Group) []Tuple {
	var tuples []Tuple
	for _, m := range o.MembershipsOf(g.Namespace, g.Name) {
		if m.DeletionTimestamp != nil {
			continue
		}
		if user, _ := o.Member(m); user != "" {
			tuples = append(tuples, Tuple{user, memberRelation, GroupObject(g)})
		}
	}
	return tuples
}

// grantTuples lead from a grant to its role and to all subjects of its bindings.
func (o *Objects) grantTuples(r *iamv1alpha1.Role, target, grant string) []Tuple {
	var tuples []Tuple
	for _, b := range o.BindingsBy(grantIndex(r.Namespace, r.Name, target)) {
		if !o.acts(b) {
			continue
		}
		tuples = append(tuples, Tuple{RoleObject(r), roleRelation, grant})
		for _, s := range b.Spec.Subjects {
			if subject, _ := o.Subject(s); subject != "" {
				tuples = append(tuples, Tuple{subject, subjectRelation, grant})
			}
		}
	}
	return tuples
}

// targetTuples lead from an object, or the root of a kind, to its grants and parents.
func (o *Objects) targetTuples(typ, object string) []Tuple {
	var tuples []Tuple
	for _, b := range o.BindingsOn(object) {
		if r := o.RoleOfBinding(b); r != nil && o.acts(b) {
			tuples = append(tuples, Tuple{Grant(r, object), grantRelation, object})
		}
	}
	k, registered := o.Registry.Kind(typ)
	if found, there := o.Target(object); there && registered {
		for _, parent := range o.parents(k, found) {
			tuples = append(tuples, Tuple{parent, parentRelation, object})
		}
	}
	return tuples
}
