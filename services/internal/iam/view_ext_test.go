package iam_test

import (
	"slices"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/iam/world"
)

// objects returns the world as input of package iam.
func objects(w *world.World) *iam.DeclaredObjects {
	return &iam.DeclaredObjects{
		Inheritance: new(iam.InheritanceCache), Registry: iam.NewRegistry(w.Resources),
		Role: func(ns, name string) *iamv1alpha1.Role {
			return world.FindFirst(w.Roles, func(r *iamv1alpha1.Role) bool { return r.Namespace == ns && r.Name == name })
		},
		RoleOf: func(o string) *iamv1alpha1.Role {
			return world.FindFirst(w.Roles, func(r *iamv1alpha1.Role) bool { return iam.RoleObject(r) == o })
		},
		Group: func(ns, name string) *iamv1alpha1.Group {
			return world.FindFirst(w.Groups, func(g *iamv1alpha1.Group) bool { return g.Namespace == ns && g.Name == name })
		},
		GroupOf: func(o string) *iamv1alpha1.Group {
			return world.FindFirst(w.Groups, func(g *iamv1alpha1.Group) bool { return iam.GroupObject(g) == o })
		},
		User: func(name string) *iamv1alpha1.User {
			return world.FindFirst(w.Users, func(u *iamv1alpha1.User) bool { return u.Name == name })
		},
		ServiceAccount: func(name string) *iamv1alpha1.ServiceAccount {
			return world.FindFirst(w.Accounts, func(a *iamv1alpha1.ServiceAccount) bool { return a.Name == name })
		},
		Target: func(o string) (iam.BindingTarget, bool) {
			if t := world.FindFirst(w.Targets, func(t *world.TargetObject) bool { return iam.OpenFGAObject(t.Type, t.Namespace, t.Name) == o }); t != nil {
				return targetOf(t)
			}
			return iam.BindingTarget{}, false
		},
		Trusted: w.IsTrusted,
		Inactive: func(subject string) bool {
			u := world.FindFirst(w.Users, func(u *iamv1alpha1.User) bool { return iam.UserSubject(u.Name) == subject })
			a := world.FindFirst(w.Accounts, func(a *iamv1alpha1.ServiceAccount) bool { return iam.ServiceAccountSubject(string(a.UID)) == subject })
			return u != nil && u.Status.State == iamv1alpha1.Inactive || a != nil && a.Spec.State == iamv1alpha1.Inactive
		},
		BindingsOn: func(target string) []*iamv1alpha1.PolicyBinding {
			return slices.DeleteFunc(slices.Clone(w.Bindings), func(b *iamv1alpha1.PolicyBinding) bool { return iam.TargetOfBinding(b) != target })
		},
		BindingsBy: func(index string) []*iamv1alpha1.PolicyBinding {
			return slices.DeleteFunc(slices.Clone(w.Bindings), func(b *iamv1alpha1.PolicyBinding) bool { return iam.RoleTargetIndexKey(b) != index })
		},
		MembershipsOf: func(ns, name string) []*iamv1alpha1.GroupMembership {
			return slices.DeleteFunc(slices.Clone(w.Memberships), func(m *iamv1alpha1.GroupMembership) bool {
				return m.Spec.GroupRef.Namespace != ns || m.Spec.GroupRef.Name != name
			})
		},
	}
}

// targetOf returns an object as a target of bindings.
func targetOf(t *world.TargetObject) (iam.BindingTarget, bool) {
	if p := t.AsProject(); p != nil {
		return iam.TargetOfProject(p)
	}
	return iam.TargetOfObject(&t.ObjectMeta)
}

// desiredTuplesByObject returns all desired tuples by object.
func desiredTuplesByObject(w *world.World) map[string][]iam.Tuple {
	o := objects(w)
	all := map[string][]iam.Tuple{}
	want := func(object string) { all[object] = o.DesiredTuples(object) }
	for _, r := range w.Roles {
		want(iam.RoleObject(r))
		for _, b := range w.Bindings {
			want(iam.GrantObject(r, iam.TargetOfBinding(b)))
		}
	}
	for _, g := range w.Groups {
		want(iam.GroupObject(g))
	}
	for _, b := range w.Bindings {
		want(iam.TargetOfBinding(b))
	}
	for _, t := range w.Targets {
		want(iam.OpenFGAObject(t.Type, t.Namespace, t.Name))
	}
	return all
}
