//go:build !race

package authz

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// TestDecideDoesNotScanAllGroups verifies that a decision does not visit all groups of a user, or all groups of a
// grant. Owners of groups can create any number of memberships and bindings.
func TestDecideDoesNotScanAllGroups(t *testing.T) {
	for _, of := range [][2]int{{flood, 3}, {3, flood}} {
		x, q := indexWithManyGroups(of[0], of[1])
		if why, ok := x.Decide(q); !ok || why.Principal.Name != group(of[0]-1) {
			t.Errorf("groups of the user and the grant %v: decided by %+v, allowed %v", of, why, ok)
		}
		if n := testing.AllocsPerRun(10, func() { x.Decide(q) }); n > 0 {
			t.Errorf("groups of the user and the grant %v: got %v allocations, want 0", of, n)
		}
		if rights := x.ListHeldRoles(q.Subject); len(rights) != 1 || rights[0].Membership.Name != fmt.Sprint("m", of[0]-1) {
			t.Errorf("WhatCan returned %+v", rights)
		}
		for i := range of[0] {
			x.SetMembership("one", fmt.Sprint("m", i), nil)
		}
		if why, ok := x.Decide(q); ok || len(x.belongings) > 0 {
			t.Errorf("after removal of all memberships: decided by %+v", why)
		}
	}
}

// TestSetRoleIgnoresUnchangedSpec verifies that permissions of roles are computed again only after a
// change of spec. A status update must be cheap, because the owner of a namespace can create any number of roles.
func TestSetRoleIgnoresUnchangedSpec(t *testing.T) {
	x := indexWithTree()
	reader := &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{
		IncludedPermissions: []string{"a/trees.get"}, InheritedRoles: []iamv1alpha1.ScopedRoleReference{{Name: "other"}, {Namespace: "two", Name: "more"}},
	}}
	heir := &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{InheritedRoles: []iamv1alpha1.ScopedRoleReference{{Name: "reader"}}}}
	x.SetRole("one", "reader", reader)
	x.SetRole("one", "heir", heir)
	anew := func(change func(r *iamv1alpha1.Role) *iamv1alpha1.Role) bool {
		t.Helper()
		at := &x.roles[Ref{"one", "heir"}].effective[0]
		x.SetRole("one", "reader", change(reader.DeepCopy()))
		return at != &x.roles[Ref{"one", "heir"}].effective[0]
	}
	for what, change := range map[string]func(*iamv1alpha1.Role) *iamv1alpha1.Role{
		"none":                   func(r *iamv1alpha1.Role) *iamv1alpha1.Role { return r },
		"status":                 func(r *iamv1alpha1.Role) *iamv1alpha1.Role { r.Status.EffectivePermissions = []string{"x"}; return r },
		"explicit own namespace": func(r *iamv1alpha1.Role) *iamv1alpha1.Role { r.Spec.InheritedRoles[0].Namespace = "one"; return r },
	} {
		if anew(change) {
			t.Errorf("change %q: permissions of roles were computed again", what)
		}
	}
	for what, change := range map[string]func(*iamv1alpha1.Role) *iamv1alpha1.Role{
		"removed permission": func(r *iamv1alpha1.Role) *iamv1alpha1.Role { r.Spec.IncludedPermissions = nil; return r },
		"another permission": func(r *iamv1alpha1.Role) *iamv1alpha1.Role { r.Spec.IncludedPermissions[0] = "a/trees.put"; return r },
		"removed inherited role": func(r *iamv1alpha1.Role) *iamv1alpha1.Role {
			r.Spec.InheritedRoles = r.Spec.InheritedRoles[:1]
			return r
		},
		"other inherited role":                func(r *iamv1alpha1.Role) *iamv1alpha1.Role { r.Spec.InheritedRoles[0].Name = "more"; return r },
		"inherited role of another namespace": func(r *iamv1alpha1.Role) *iamv1alpha1.Role { r.Spec.InheritedRoles[1].Namespace = ""; return r },
		"deletion mark":                       func(r *iamv1alpha1.Role) *iamv1alpha1.Role { r.DeletionTimestamp = new(metav1.Now()); return r },
		"removal":                             func(*iamv1alpha1.Role) *iamv1alpha1.Role { return nil },
	} {
		x.SetRole("one", "reader", reader)
		if !anew(change) {
			t.Errorf("change %q: permissions of roles were not computed again", what)
		}
	}
	x.SetBinding("one", "b", nil)
	x.SetRole("one", "heir", nil)
	if x.SetRole("one", "reader", nil); len(x.roles) > 0 {
		t.Errorf("roles left after removal: %v", x.roles)
	}
}

// TestListAllowedPrincipalsVisitsPrincipalOnce verifies the cost of ListAllowedPrincipals and PreviewBinding. It must
// not grow with the number of bindings on one group, or of repeated subjects in a binding.
func TestListAllowedPrincipalsVisitsPrincipalOnce(t *testing.T) {
	const many = 10_000
	x, oak := indexWithTree(), &iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "oak", UID: "2"}
	for i := range 1000 {
		m := &iamv1alpha1.GroupMembership{}
		m.Spec.UserRef.Name, m.Spec.GroupRef.Namespace, m.Spec.GroupRef.Name = "alice", "one", "staff"
		m.Status.User = &iamv1alpha1.Member{Name: "alice", UID: "1"}
		x.SetMembership("one", fmt.Sprint("m", i), m)
	}
	x.SetGroup("one", "staff", &iamv1alpha1.Group{ObjectMeta: metav1.ObjectMeta{UID: "3"}})
	of := func(n int) (who, preview float64) {
		staff := binds(oak)
		staff.Spec.Subjects = []iamv1alpha1.Subject{{Kind: "Group", Namespace: "one", Name: "staff", UID: "3"}}
		alice := binds(oak)
		alice.Spec.Subjects = nil
		for i := range n {
			x.SetBinding("one", fmt.Sprint("staff", i), staff)
			alice.Spec.Subjects = append(alice.Spec.Subjects, iamv1alpha1.Subject{Kind: "User", Name: "alice", UID: "1"})
		}
		q := Query{Permission: "a/trees.get", Type: "a/Tree", Namespace: "one", Name: "oak"}
		if holders, more := x.ListAllowedPrincipals(q, many); len(holders) != 2 || more {
			t.Errorf("WhoCan returned %+v, more %v", holders, more)
		}
		if p := x.PreviewBinding("one", alice, many); len(p.Gains) != n || p.More {
			t.Errorf("Preview of %d subjects returned %+v", n, p)
		}
		return testing.AllocsPerRun(3, func() { x.ListAllowedPrincipals(q, many) }), testing.AllocsPerRun(3, func() { x.PreviewBinding("one", alice, many) })
	}
	who, preview := of(10)
	whoOfMore, previewOfMore := of(1010)
	if whoOfMore > who+10 || previewOfMore > preview+50 {
		t.Errorf("allocations for 10 and 1010: WhoCan %v and %v, Preview %v and %v", who, whoOfMore, preview, previewOfMore)
	}
}

// TestDecideVisitsRepeatedGroupOnce repeats a group in a request, and a membership of a user in one group.
// Each group must be visited once.
func TestDecideVisitsRepeatedGroupOnce(t *testing.T) {
	const roles, often = 30, 1000
	x := indexWithTree()
	for i := range roles {
		b := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "oak", UID: "2"})
		b.Spec.RoleRef.Name = fmt.Sprint("reader", i)
		b.Spec.Subjects = []iamv1alpha1.Subject{{Kind: "Group", Name: "oidc:sales"}, {Kind: "Group", Namespace: "one", Name: "staff", UID: "3"}}
		x.SetRole("one", b.Spec.RoleRef.Name, &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a/trees.get"}}})
		x.SetBinding("one", b.Spec.RoleRef.Name, b)
	}
	x.SetGroup("one", "staff", &iamv1alpha1.Group{ObjectMeta: metav1.ObjectMeta{UID: "3"}})
	x.SetUser("mia", &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "4"}})
	for i := range often {
		m := &iamv1alpha1.GroupMembership{Status: iamv1alpha1.GroupMembershipStatus{User: &iamv1alpha1.Member{Name: "mia", UID: "4"}}}
		m.Spec.UserRef.Name, m.Spec.GroupRef.Namespace, m.Spec.GroupRef.Name = "mia", "one", "staff"
		x.SetMembership("one", fmt.Sprint("m", i), m)
	}
	for _, who := range []Subject{{Groups: slices.Repeat([]string{"oidc:sales"}, often)}, {User: "mia"}} {
		if n, rights := len(x.principalsOfSubject(who)), x.ListHeldRoles(who); n != 1 || len(rights) != roles {
			t.Errorf("%.20s: got %d principals and %d rights", fmt.Sprint(who), n, len(rights))
		}
	}
}

// TestDecideVisitsCommonAncestorOnce gives an object many owners with common ancestors. Each ancestor must be
// visited once.
func TestDecideVisitsCommonAncestorOnce(t *testing.T) {
	x, folders := indexWithFolders(30)
	of := func(n int) float64 {
		return testing.AllocsPerRun(3, func() {
			if m, lacks := x.MissingToSetOwners(Subject{User: "alice"}, file(), "2", folders[:n]); lacks {
				t.Errorf("alice lacks %+v", m)
			}
		})
	}
	if few, all := of(2), of(len(folders)); all > 2*few {
		t.Errorf("allocations: two owners %v, thirty %v", few, all)
	}
}

// TestDecideUsesNearestOwners gives an object more ancestors than [MaxOwners]. Roles on the nearest ancestors
// give access. Roles on an ancestor that is not followed give no access.
func TestDecideUsesNearestOwners(t *testing.T) {
	for _, c := range []struct {
		owners int
		cut    bool
	}{{30, false}, {100, true}} {
		x, folders := indexWithFolders(c.owners)
		x.SetTarget(file().Type, file().Namespace, file().Name, &iam.BindingTarget{Namespace: "one", UID: "2", Owners: folders})
		x.SetRole("one", "reader", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a/files.get"}}})
		x.SetUser("alice", &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "1"}})
		last := folders[len(folders)-1].Name
		for kind, counts := range map[string]bool{"Folder": true, "Cabinet": !c.cut} {
			x.SetTarget("a/Cabinet", "one", "far", &iam.BindingTarget{Namespace: "one", UID: "2"})
			name := map[string]string{"Folder": last, "Cabinet": "far"}[kind]
			x.SetBinding("one", "b", binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: kind, Namespace: "one", Name: name, UID: "2"}))
			q := Query{Subject: Subject{User: "alice"}, Permission: "a/files.get", Type: file().Type, Namespace: "one", Name: file().Name}
			if _, ok := x.Decide(q); ok != counts {
				t.Errorf("below %d folders of %d cabinets each, a role on %s: got allowed %v", c.owners, c.owners, name, ok)
			}
			if _, askable := x.ToOpenFGACheck(q); askable == c.cut {
				t.Errorf("below %d folders of %d cabinets each, Check returned ok %v", c.owners, c.owners, askable)
			}
			if holders, _ := x.ListAllowedPrincipals(q, 10); len(holders) > 0 != counts {
				t.Errorf("below %d folders of %d cabinets each, a role on %s: WhoCan returned %v", c.owners, c.owners, name, holders)
			}
			if e := x.Explain(q); e.Truncated != (c.cut && !counts) {
				t.Errorf("below %d folders of %d cabinets each, a role on %s: got Truncated %v", c.owners, c.owners, name, e.Truncated)
			}
		}
		x.SetBinding("one", "b", nil)
		if m, lacks := x.MissingToSetOwners(Subject{User: "alice"}, file(), "2", folders); lacks != c.cut || m != (MissingRight{Owners: c.cut}) {
			t.Errorf("of %d folders of %d cabinets each, alice lacks %+v", c.owners, c.owners, m)
		}
	}
}
