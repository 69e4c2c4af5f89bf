package iam

import (
	"cmp"
	"slices"
	"strings"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// Tuple is an OpenFGA relationship tuple.
type Tuple struct{ User, Relation, Object string }

// Compare orders tuples by object, relation and user.
func (t Tuple) Compare(other Tuple) int {
	return cmp.Or(cmp.Compare(t.Object, other.Object), cmp.Compare(t.Relation, other.Relation), cmp.Compare(t.User, other.User))
}

// TargetOfBinding returns the OpenFGA object that a binding is on: one object, or the root of a kind. It returns ""
// for a binding without a selector.
func TargetOfBinding(b *iamv1alpha1.PolicyBinding) string {
	selector := b.Spec.ResourceSelector
	switch {
	case selector.ResourceRef != nil:
		return OpenFGAObject(OpenFGAType(selector.ResourceRef.APIGroup, selector.ResourceRef.Kind), selector.ResourceRef.Namespace, selector.ResourceRef.Name)
	case selector.ResourceKind != nil:
		return RootObject(OpenFGAType(selector.ResourceKind.APIGroup, selector.ResourceKind.Kind))
	}
	return ""
}

// RoleTargetIndexKey returns the index key that all bindings of one role to one target share. The role and the target
// need not exist.
func RoleTargetIndexKey(b *iamv1alpha1.PolicyBinding) string {
	return formatRoleTargetIndexKey(cmp.Or(b.Spec.RoleRef.Namespace, b.Namespace), b.Spec.RoleRef.Name, hashTarget(TargetOfBinding(b)))
}

func formatRoleTargetIndexKey(namespace, role, target string) string {
	return namespace + "/" + role + "/" + target
}

// RoleOfBinding returns the role of a binding, or nil if it is missing or in deletion.
func (o *DeclaredObjects) RoleOfBinding(b *iamv1alpha1.PolicyBinding) *iamv1alpha1.Role {
	return o.liveRole(cmp.Or(b.Spec.RoleRef.Namespace, b.Namespace), b.Spec.RoleRef.Name)
}

// InvalidTargetReason returns a reason of [iamv1alpha1.TargetValid] if the target of a binding is not valid, otherwise
// "".
func (o *DeclaredObjects) InvalidTargetReason(b *iamv1alpha1.PolicyBinding) string {
	selector := b.Spec.ResourceSelector
	target := TargetOfBinding(b)
	switch {
	case selector.ResourceRef != nil:
		typ := OpenFGAType(selector.ResourceRef.APIGroup, selector.ResourceRef.Kind)
		if _, ok := o.Registry.Kind(typ); !ok {
			return iamv1alpha1.ValidationFailed
		}
		found, ok := o.Target(target)
		switch {
		case ok:
		case o.Trusted != nil && o.Trusted(typ):
			return ""
		default:
			return o.missingTargetReason(typ, selector.ResourceRef.Namespace)
		}
		if found.UID != selector.ResourceRef.UID {
			return iamv1alpha1.TargetUIDMismatch
		}
		return ""
	case selector.ResourceKind != nil:
		if _, ok := o.Registry.Kind(OpenFGAType(selector.ResourceKind.APIGroup, selector.ResourceKind.Kind)); ok {
			return ""
		}
	}
	return iamv1alpha1.ValidationFailed
}

// missingTargetReason returns the reason why a target was not found.
func (o *DeclaredObjects) missingTargetReason(typ, namespace string) string {
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

// isActiveBinding reports whether a binding has a valid target and at least one active subject, and is not in
// deletion. It does not check the role.
func (o *DeclaredObjects) isActiveBinding(b *iamv1alpha1.PolicyBinding) bool {
	return b.DeletionTimestamp == nil && o.InvalidTargetReason(b) == "" && slices.ContainsFunc(b.Spec.Subjects, func(s iamv1alpha1.Subject) bool {
		subject, _ := o.ResolveSubject(s)
		return subject != ""
	})
}

// DesiredTuples returns the tuples that an OpenFGA object of IAM's types must hold, sorted and without duplicates.
func (o *DeclaredObjects) DesiredTuples(object string) []Tuple {
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

func (o *DeclaredObjects) memberTuples(g *iamv1alpha1.Group) []Tuple {
	var tuples []Tuple
	for _, m := range o.MembershipsOf(g.Namespace, g.Name) {
		if m.DeletionTimestamp != nil {
			continue
		}
		if user, _ := o.ResolveMember(m); user != "" {
			tuples = append(tuples, Tuple{user, memberRelation, GroupObject(g)})
		}
	}
	return tuples
}

// grantTuples returns the tuples that link a grant to its role and to the subjects of its bindings.
func (o *DeclaredObjects) grantTuples(r *iamv1alpha1.Role, target, grant string) []Tuple {
	var tuples []Tuple
	for _, b := range o.BindingsBy(formatRoleTargetIndexKey(r.Namespace, r.Name, target)) {
		if !o.isActiveBinding(b) {
			continue
		}
		tuples = append(tuples, Tuple{RoleObject(r), roleRelation, grant})
		for _, s := range b.Spec.Subjects {
			if subject, _ := o.ResolveSubject(s); subject != "" {
				tuples = append(tuples, Tuple{subject, subjectRelation, grant})
			}
		}
	}
	return tuples
}

// targetTuples returns the tuples that link an object, or the root of a kind, to its grants and parents.
func (o *DeclaredObjects) targetTuples(typ, object string) []Tuple {
	var tuples []Tuple
	for _, b := range o.BindingsOn(object) {
		if r := o.RoleOfBinding(b); r != nil && o.isActiveBinding(b) {
			tuples = append(tuples, Tuple{GrantObject(r, object), grantRelation, object})
		}
	}
	k, registered := o.Registry.Kind(typ)
	if found, there := o.Target(object); there && registered {
		for _, parent := range o.storedParentNames(k, found) {
			tuples = append(tuples, Tuple{parent, parentRelation, object})
		}
	}
	return tuples
}
