package iam

import (
	"slices"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

func find[T any](in []T, is func(T) bool) (t T) {
	if i := slices.IndexFunc(in, is); i >= 0 {
		t = in[i]
	}
	return t
}

// objects are the world as the package reads it.
func (w *world) objects() *Objects {
	return &Objects{
		Registry: Register(w.resources),
		Role: func(ns, name string) *iamv1alpha1.Role {
			return find(w.roles, func(r *iamv1alpha1.Role) bool { return r.Namespace == ns && r.Name == name })
		},
		RoleOf: func(o string) *iamv1alpha1.Role {
			return find(w.roles, func(r *iamv1alpha1.Role) bool { return RoleObject(r) == o })
		},
		Group: func(ns, name string) *iamv1alpha1.Group {
			return find(w.groups, func(g *iamv1alpha1.Group) bool { return g.Namespace == ns && g.Name == name })
		},
		GroupOf: func(o string) *iamv1alpha1.Group {
			return find(w.groups, func(g *iamv1alpha1.Group) bool { return GroupObject(g) == o })
		},
		User: func(name string) *iamv1alpha1.User {
			return find(w.users, func(u *iamv1alpha1.User) bool { return u.Name == name })
		},
		ServiceAccount: func(name string) *iamv1alpha1.ServiceAccount {
			return find(w.accounts, func(a *iamv1alpha1.ServiceAccount) bool { return a.Name == name })
		},
		Target: func(o string) (Target, bool) {
			if t := find(w.things, func(t *thing) bool { return Object(t.typ, t.Namespace, t.Name) == o }); t != nil {
				return TargetOfObject(&t.ObjectMeta)
			}
			return Target{}, false
		},
		Inactive: func(subject string) bool {
			u := find(w.users, func(u *iamv1alpha1.User) bool { return User(u.Name) == subject })
			a := find(w.accounts, func(a *iamv1alpha1.ServiceAccount) bool { return ServiceAccount(string(a.UID)) == subject })
			return u != nil && u.Status.State == iamv1alpha1.Inactive || a != nil && a.Spec.State == iamv1alpha1.Inactive
		},
		BindingsOn: func(target string) []*iamv1alpha1.PolicyBinding {
			return slices.DeleteFunc(slices.Clone(w.bindings), func(b *iamv1alpha1.PolicyBinding) bool { return TargetOf(b) != target })
		},
		BindingsBy: func(index string) []*iamv1alpha1.PolicyBinding {
			return slices.DeleteFunc(slices.Clone(w.bindings), func(b *iamv1alpha1.PolicyBinding) bool { return GrantIndex(b) != index })
		},
		MembershipsOf: func(ns, name string) []*iamv1alpha1.GroupMembership {
			return slices.DeleteFunc(slices.Clone(w.memberships), func(m *iamv1alpha1.GroupMembership) bool {
				return m.Spec.GroupRef.Namespace != ns || m.Spec.GroupRef.Name != name
			})
		},
	}
}

// wanted are all tuples, by object.
func (w *world) wanted() map[string][]Tuple {
	o := w.objects()
	all := map[string][]Tuple{}
	want := func(object string) { all[object] = o.Wanted(object) }
	for _, r := range w.roles {
		want(RoleObject(r))
		for _, b := range w.bindings {
			want(Grant(r, TargetOf(b)))
		}
	}
	for _, g := range w.groups {
		want(GroupObject(g))
	}
	for _, b := range w.bindings {
		want(TargetOf(b))
	}
	for _, t := range w.things {
		want(Object(t.typ, t.Namespace, t.Name))
	}
	return all
}
