package iam

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// withSpecOf returns p with the spec of other, as after an edit.
func withSpecOf(p, other *iamv1alpha1.ProtectedResource) *iamv1alpha1.ProtectedResource {
	p.Spec = *other.Spec.DeepCopy()
	return withNextGeneration(p)
}

// withRecordedFinding returns a copy of p whose status records the registration in a finding.
func withRecordedFinding(p *iamv1alpha1.ProtectedResource, found RegistrationFinding) *iamv1alpha1.ProtectedResource {
	p = p.DeepCopy()
	p.Status.Registered = found.Registration
	return p
}

// An edit makes a new claim. The resource that has registered the kind keeps it, even if it is younger.
func TestRegistryEditDoesNotTakeKindFromOthers(t *testing.T) {
	const fine = iamv1alpha1.IAMSystemConfigured
	old := func(kind, plural string, parents ...string) *iamv1alpha1.ProtectedResource {
		return withRegistrationCondition(resource(1, kind, plural, parents...), fine)
	}
	young := func(kind, plural string, parents ...string) *iamv1alpha1.ProtectedResource {
		return withRegistrationCondition(resource(2, kind, plural, parents...), fine)
	}
	tests := map[string]struct {
		edited, other *iamv1alpha1.ProtectedResource
		want          string
	}{
		"a kind":               {withSpecOf(old("a/Tree", "trees"), resource(0, "a/Wood", "forests")), young("a/Wood", "woods"), iamv1alpha1.AlreadyRegistered},
		"a plural":             {withSpecOf(old("a/Tree", "trees"), resource(0, "a/Forest", "woods")), young("a/Wood", "woods"), iamv1alpha1.AlreadyRegistered},
		"both":                 {withSpecOf(old("a/Tree", "trees"), resource(0, "a/Wood", "woods")), young("a/Wood", "woods"), iamv1alpha1.AlreadyRegistered},
		"a kind and no plural": {withSpecOf(old("a/Tree", "trees"), resource(0, "a/Wood", "trees")), young("a/Wood", "woods"), iamv1alpha1.AlreadyRegistered},
		"a link":               {withSpecOf(old("a/Tree", "trees"), resource(0, "a/Tree", "trees", "a/Wood")), young("a/Wood", "woods", "a/Tree"), iamv1alpha1.ParentCycle},
		"a relation": {
			withSpecOf(old("a.example/Tree", collidingPlural), permitting(resource(0, "a.example/Tree", collidingPlural), "list", "get")),
			young("a.example/Wood", collidedPlural), iamv1alpha1.PermissionCollision,
		},
	}
	tests["a relation"].edited.Status.Registered.Permissions = []string{"a.example/" + collidingPlural + ".list"}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, resources := range [][]*iamv1alpha1.ProtectedResource{{test.edited, test.other}, {test.other, test.edited}} {
				r := NewRegistry(resources)
				if got := r.FindingFor(test.edited.Name).Reason; got != test.want {
					t.Errorf("edited resource: got %s, want %s", got, test.want)
				}
				if got := r.FindingFor(test.other.Name); got.Reason != fine || !includesAll(got.Registration, test.other.Status.Registered) {
					t.Errorf("the other one has %+v: %s", got.Registration, got.Reason)
				}
			}
		})
	}
}

// A resource keeps its registered entries until its status changes, because an edit can claim them again before that.
func TestRegistryReservesRecordedNames(t *testing.T) {
	const fine = iamv1alpha1.IAMSystemConfigured
	tests := map[string]struct {
		// was is registered and then edited to now. After that, other claims the entry that now no longer has.
		was, now, other *iamv1alpha1.ProtectedResource
		want            string
	}{
		"a kind":   {resource(2, "a/Tree", "trees"), resource(2, "a/Bush", "bushes"), resource(1, "a/Tree", "forests"), iamv1alpha1.AlreadyRegistered},
		"a plural": {resource(2, "a/Tree", "trees"), resource(2, "a/Bush", "bushes"), resource(1, "a/Forest", "trees"), iamv1alpha1.AlreadyRegistered},
		"a link": {
			resource(2, "a/Tree", "trees", "a/Wood"), resource(2, "a/Tree", "trees"), withRegistrationCondition(resource(1, "a/Wood", "woods"), fine), iamv1alpha1.ParentCycle,
		},
		"a relation": {
			resource(2, "a.example/Tree", collidingPlural), permitting(resource(2, "a.example/Tree", collidingPlural), "list"),
			resource(1, "a.example/Wood", collidedPlural), iamv1alpha1.PermissionCollision,
		},
	}
	link := tests["a link"].other
	withSpecOf(link, resource(1, "a/Wood", "woods", "a/Tree"))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			edited := withSpecOf(withRegistrationCondition(test.was, fine), test.now)
			r := NewRegistry([]*iamv1alpha1.ProtectedResource{edited, test.other})
			if got := r.FindingFor(test.other.Name).Reason; got != test.want {
				t.Errorf("other resource: got %s, want %s", got, test.want)
			}
			after := NewRegistry([]*iamv1alpha1.ProtectedResource{withRecordedFinding(edited, r.FindingFor(edited.Name)), test.other})
			if got := after.FindingFor(test.other.Name).Reason; got != fine {
				t.Errorf("other resource after the record: got %s", got)
			}
			gone := NewRegistry([]*iamv1alpha1.ProtectedResource{deleted(edited), test.other})
			if got := gone.FindingFor(test.other.Name).Reason; got == test.want {
				t.Errorf("other resource after deletion of the holder: got %s", got)
			}
		})
	}
}

// A registration in a status has an effect only for its group, kind and plural.
func TestRegistryIgnoresRecordOfOtherKind(t *testing.T) {
	const fine = iamv1alpha1.IAMSystemConfigured
	other := withRegistrationCondition(resource(2, "a/Wood", "woods", "a/Tree"), fine)
	tree := resource(3, "a/Tree", "trees")
	for name, edit := range map[string]func(*iamv1alpha1.Registration){
		"group": func(r *iamv1alpha1.Registration) { r.Group = "b" }, "kind": func(r *iamv1alpha1.Registration) { r.Kind = "Bush" },
		"plural": func(r *iamv1alpha1.Registration) { r.Plural = "bushes" },
	} {
		forged := withRegistrationCondition(resource(1, "a/Tree", "forests", "a/Wood"), fine)
		edit(forged.Status.Registered)
		r := NewRegistry([]*iamv1alpha1.ProtectedResource{forged, other, withRegistrationCondition(tree, fine)})
		if got := r.FindingFor(forged.Name).Reason; got != iamv1alpha1.AlreadyRegistered {
			t.Errorf("record of another %s: got %s", name, got)
		}
		if got := r.FindingFor(other.Name); got.Reason != fine || len(got.Registration.Parents) != 1 {
			t.Errorf("record of another %s: other resource: got %+v", name, got)
		}
	}
}

func TestNewRegistryForTypesOmitsMissingTypes(t *testing.T) {
	const fine = iamv1alpha1.IAMSystemConfigured
	held, waits := withSpecOf(withRegistrationCondition(resource(2, "a/Tree", "trees"), fine), resource(2, "a/Bush", "bushes")), resource(1, "a/Tree", "forests")
	r := NewRegistryForTypes([]*iamv1alpha1.ProtectedResource{held, waits}, func(typ string) bool { return typ == "a/Tree" })
	if kinds := r.Kinds(); len(kinds) > 0 { // The model does not show which resource registers a/Tree.
		t.Errorf("got kind %s, want none", kinds[0].Type)
	}
}

func TestRegistryOmitsResourceOverBudget(t *testing.T) {
	full := withRegistrationCondition(resource(1, "a/Tree", "trees"), iamv1alpha1.LimitExceeded)
	r := NewRegistry([]*iamv1alpha1.ProtectedResource{full, resource(2, "a/Tree", "forests")})
	if k, ok := r.Kind("a/Tree"); !ok || k.Resource == full || r.FindingFor(full.Name).Reason != iamv1alpha1.LimitExceeded {
		t.Errorf("got kind %+v, finding %+v", k, r.FindingFor(full.Name))
	}
	if _, ok := RegistryWithinBudget([]*iamv1alpha1.ProtectedResource{full}, ModelBudget{100, 1 << 20}).Kind("a/Tree"); !ok {
		t.Error("a resource beyond the limit is not registered when room is free")
	}
}

// includesAll reports whether now includes all of before.
func includesAll(now, before *iamv1alpha1.Registration) bool {
	within := func(some, all []string) bool {
		return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
	}
	return now != nil && within(before.Permissions, now.Permissions) && within(before.Parents, now.Parents)
}

func shuffled(random *rand.Rand, all []*iamv1alpha1.ProtectedResource) []*iamv1alpha1.ProtectedResource {
	all = slices.Clone(all)
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// checkHeld checks that each unedited resource keeps its registration, except for parents that no longer exist.
func checkHeld(t *testing.T, r *Registry, all []*iamv1alpha1.ProtectedResource) {
	t.Helper()
	for _, p := range all {
		if p.Status.Registered == nil || p.Status.Registered.Generation != p.Generation {
			continue
		}
		had := p.Status.Registered.DeepCopy()
		had.Parents = slices.DeleteFunc(had.Parents, func(parent string) bool { _, there := r.Kind(parent); return !there })
		if got := r.FindingFor(p.Name); !includesAll(got.Registration, had) {
			t.Errorf("%s had %+v, and has %+v: %s", p.Name, had, got.Registration, got.Message)
		}
	}
}

// checkRecords checks that no two statuses record the same entry.
func checkRecords(t *testing.T, all []*iamv1alpha1.ProtectedResource) {
	t.Helper()
	owners := map[string]string{}
	own := func(what, whose string) {
		if other := owners[what]; other != "" && other != whose {
			t.Errorf("%s is recorded for %s and for %s", what, other, whose)
		}
		owners[what] = whose
	}
	for _, p := range all {
		r := p.Status.Registered
		if r == nil {
			continue
		}
		own("kind "+r.Kind, p.Name)
		own("plural "+r.Plural, p.Name)
		for _, permission := range r.Permissions {
			own("relation "+RelationOf(permission), permission)
		}
	}
	links := readReservations(all).parents
	for typ := range links {
		reached := slices.Clone(links[typ])
		for i := 0; i < len(reached); i++ {
			for _, parent := range links[reached[i]] {
				if !slices.Contains(reached, parent) {
					reached = append(reached, parent)
				}
			}
		}
		if slices.Contains(reached, typ) {
			t.Errorf("%s is above itself by %s", typ, strings.Join(reached, " "))
		}
	}
}
