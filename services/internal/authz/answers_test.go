package authz

import (
	"math/rand/v2"
	"slices"
	"testing"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam/world"
	"github.com/entail-dev/entail/services/internal/seeds"
)

// forEachRandomWorld calls f for random worlds after several rounds of changes, with an index that has received the
// changes.
func forEachRandomWorld(t *testing.T, f func(w *world.World, x *Index)) {
	t.Helper()
	for seed := range seeds.SeedRange(t, 60) {
		w, x, before, r := world.NewRandom(seed), New(nil), receivedObjects{}, rand.New(rand.NewPCG(seed, 1))
		for range 3 {
			before = before.tell(r, x, w)
			for _, thing := range w.Targets {
				x.SetTypeObserved(thing.Type, true)
			}
			f(w, x)
			for range changes {
				w.ChangeRandomly()
			}
		}
	}
}

func TestExplainReturnsDecisionAndReason(t *testing.T) {
	found := map[string]int{}
	forEachRandomWorld(t, func(w *world.World, x *Index) {
		for range questions {
			q := newQuery(w.RandomRequest())
			why, allowed := x.Decide(q)
			e := x.Explain(q)
			if e.Allowed != allowed {
				t.Fatalf("got Allowed %v from Explain, want %v as from Decide", e.Allowed, allowed)
			}
			if !allowed {
				note := map[string]bool{"unregistered": e.Unregistered, "no subject": e.NoSubject, "no object": e.NoObject, "lacking": len(e.RolesWithoutPermission) > 0}
				for what, is := range note {
					if is {
						found[what]++
					}
				}
				continue
			}
			if first, last := e.Path[0], e.Path[len(e.Path)-1]; last != why.At || first.Type != q.Type || q.Name != "" && !first.All && first.Ref != (Ref{q.Namespace, q.Name}) {
				t.Fatalf("%+v is allowed on %+v, but Path is %+v", q, why.At, e.Path)
			}
			heir := e.InheritancePath[0]
			for _, inherited := range e.InheritancePath[1:] {
				if !slices.Contains(x.roles[heir].inherits, x.roles[inherited]) {
					t.Fatalf("%v does not inherit %v", heir, inherited)
				}
				heir = inherited
			}
			if e.InheritancePath[0] != e.Role || !slices.Contains(x.roles[heir].included, q.Permission) {
				t.Fatalf("%s by %v does not come from role %v", q.Permission, e.InheritancePath, e.Role)
			}
			if m := x.memberships[e.Membership]; e.Principal.Kind == Group && (m.user != q.User || m.group != e.Principal.Ref) {
				t.Fatalf("membership of %s in %v is %+v", q.User, e.Principal, m)
			}
			found["allowed"]++
			if len(e.Path) > 2 {
				found["from far above"]++
			}
			if len(e.InheritancePath) > 1 {
				found["inherited"]++
			}
			if e.Principal.Kind == Group {
				found["by a group"]++
			}
		}
	})
	for _, what := range []string{"unregistered", "no subject", "no object", "lacking", "allowed", "from far above", "inherited", "by a group"} {
		if found[what] == 0 {
			t.Errorf("no case %q occurred: %v", what, found)
		}
	}
}

func TestListAllowedPrincipals(t *testing.T) {
	held := 0
	forEachRandomWorld(t, func(w *world.World, x *Index) {
		for range 20 {
			q := newQuery(w.RandomRequest())
			listed, more := x.ListAllowedPrincipals(q, 1000)
			subjects := map[Principal]Subject{}
			for _, u := range w.Users {
				subjects[Principal{User, Ref{Name: u.Name}, string(u.UID)}] = Subject{User: u.Name}
			}
			for _, a := range w.Accounts {
				subjects[Principal{ServiceAccount, Ref{Name: a.Name}, string(a.UID)}] = Subject{Account: string(a.UID)}
			}
			for _, g := range world.TokenGroups() {
				subjects[Principal{Kind: TokenGroup, Ref: Ref{Name: g}}] = Subject{Groups: []string{g}}
			}
			for principal, s := range subjects {
				q.Subject = s
				_, want := x.Decide(q)
				got := slices.ContainsFunc(listed, func(h AllowedPrincipal) bool {
					return h.Principal == principal || principal.Kind == ServiceAccount && h.Principal == Principal{Kind: CoreServiceAccount, UID: principal.UID}
				})
				if got != want {
					t.Fatalf("%+v: Decide returned %v, listed by WhoCan: %v", s, want, got)
				}
				if want {
					held++
				}
			}
			if few, cut := x.ListAllowedPrincipals(q, 1); more || cut != (len(listed) > 1) || len(few) != min(1, len(listed)) {
				t.Fatalf("WhoCan of %d holders with limit 1: %d holders, more %v", len(listed), len(few), cut)
			}
		}
	})
	if held == 0 {
		t.Error("no query was allowed, so nothing was tested")
	}
}

func TestListHeldRoles(t *testing.T) {
	listed := 0
	forEachRandomWorld(t, func(w *world.World, x *Index) {
		for range questions {
			q := newQuery(w.RandomRequest())
			rights := x.ListHeldRoles(q.Subject)
			why, allowed := x.Decide(q)
			if allowed && !slices.ContainsFunc(rights, func(r HeldRole) bool {
				return r.Proof.At == why.At && r.Proof.Role == why.Role && slices.Contains(x.RolePermissionsOn(r.Proof.Role, r.Proof.At), q.Permission)
			}) {
				t.Fatalf("%+v: WhatCan does not list %+v", q, why)
			}
			for _, right := range rights {
				at := right.Proof.At
				permissions := x.RolePermissionsOn(right.Proof.Role, at)
				if len(permissions) != right.PermissionCount {
					t.Fatalf("%+v: Gives differs from permissions %v", right, permissions)
				}
				for _, permission := range permissions {
					listed++
					if _, ok := x.Decide(Query{Subject: q.Subject, Permission: permission, Type: at.Type, Namespace: at.Namespace, Name: at.Name}); !ok {
						t.Fatalf("WhatCan lists %s on %+v, but Decide refuses it", permission, at)
					}
				}
			}
		}
	})
	if listed == 0 {
		t.Error("no query was allowed, so nothing was tested")
	}
}

func TestPreviewBindingListsGains(t *testing.T) {
	gained := 0
	forEachRandomWorld(t, func(w *world.World, x *Index) {
		for _, b := range w.Bindings {
			b = b.DeepCopy()
			b.DeletionTimestamp = nil
			x.SetBinding(b.Namespace, b.Name, nil)
			at, _, _ := scopeOfSelector(b.Spec.ResourceSelector)
			before, preview := x.all(b, at), x.PreviewBinding(b.Namespace, b, 1000)
			x.SetBinding(b.Namespace, b.Name, b)
			after := x.all(b, at)
			for i, gain := range preview.Gains {
				want := slices.DeleteFunc(after[i], func(p string) bool { return slices.Contains(before[i], p) })
				if !slices.Equal(gain.Permissions, want) {
					t.Fatalf("%+v: Preview lists %v, but the gain is %v: %+v", gain.Subject, gain.Permissions, want, preview)
				}
				gained += len(want)
			}
		}
	})
	if gained == 0 {
		t.Error("no subject gained a permission, so nothing was tested")
	}
}

// all lists the permissions that each subject of a binding has on a scope.
func (x *Index) all(b *iamv1alpha1.PolicyBinding, at Scope) [][]string {
	all := make([][]string, len(b.Spec.Subjects))
	for i, s := range b.Spec.Subjects {
		for _, permission := range x.permissionNames(x.permissionSetOf(x.names), x.permissionSetOf(x.names), nil) {
			q := Query{Permission: permission, Type: at.Type, Namespace: at.Namespace, Name: at.Name}
			who, ok := principalOf(s)
			if !ok || !x.isActivePrincipal(who) {
				continue
			}
			holders, _ := x.ListAllowedPrincipals(q, 1000)
			if slices.ContainsFunc(holders, func(h AllowedPrincipal) bool { return h.Principal == who }) {
				all[i] = append(all[i], permission)
			}
		}
	}
	return all
}

func TestDecideDoesNotAllocate(t *testing.T) {
	w, x := world.NewRandom(3), New(nil)
	receivedObjects{}.tell(w.Random, x, w)
	allowed := 0
	for range 200 {
		q := newQuery(w.RandomRequest())
		if _, ok := x.Decide(q); ok {
			allowed++
		}
		if n := testing.AllocsPerRun(10, func() { x.Decide(q) }); n > 0 {
			t.Fatalf("Decide(%+v): got %v allocations, want 0", q, n)
		}
	}
	if allowed == 0 {
		t.Error("no query was allowed, so nothing was tested")
	}
}
