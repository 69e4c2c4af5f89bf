package derived

import (
	"slices"
	"strings"
	"testing"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// holdsAny says whether a tuple has any of the texts in it.
func (b *reconcilerEnv) holdsAny(texts ...string) bool {
	return slices.ContainsFunc(b.openFGA.holds(), func(t string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(t, text) })
	})
}

func TestServiceAccountTuplesGoWithAccount(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	account := func(state iamv1alpha1.ActivationState) {
		b.put(kinds.IAMServiceAccounts(), "robot", &iamv1alpha1.ServiceAccount{Spec: iamv1alpha1.ServiceAccountSpec{State: state}})
	}
	account("")
	robot := b.subject(kinds.IAMServiceAccounts(), "robot")
	b.bind("robot", "viewer", robot)
	for _, step := range []struct {
		what string
		do   func()
		has  bool
	}{
		{"as it is", func() {}, true},
		{"inactive", func() { account(iamv1alpha1.Inactive) }, false},
		{"active again", func() { account("") }, true},
		{"deleted", func() { b.drop(kinds.IAMServiceAccounts(), "robot") }, false},
		{"made anew", func() { account("") }, false},
	} {
		step.do()
		b.work()
		if got := b.holdsAny("sa/" + robot.UID); got != step.has {
			t.Errorf("%s it has something: %v", step.what, got)
		}
		b.inStep(step.what)
	}
}

// Of an account of the core API only the UID is compared, and somebody may give a namespace to one of IAM.
func TestInactiveAccountDoesNotHaveTuples(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	account := func(state iamv1alpha1.ActivationState) {
		b.put(kinds.IAMServiceAccounts(), "robot", &iamv1alpha1.ServiceAccount{Spec: iamv1alpha1.ServiceAccountSpec{State: state}})
	}
	account(iamv1alpha1.Inactive)
	robot := b.subject(kinds.IAMServiceAccounts(), "robot")
	robot.Namespace = ns
	b.bind("robot", "viewer", robot)
	for _, step := range []struct {
		what string
		do   func()
		has  bool
	}{
		{"inactive", func() {}, false},
		{"active", func() { account("") }, true},
		{"inactive again", func() { account(iamv1alpha1.Inactive) }, false},
		{"gone, as far as IAM knows", func() { b.drop(kinds.IAMServiceAccounts(), "robot") }, true},
	} {
		step.do()
		b.work()
		if got := b.holdsAny("sa/" + robot.UID); got != step.has {
			t.Errorf("%s it has something: %v", step.what, got)
		}
		b.inStep(step.what)
	}
}

func TestGrantsGoWithObject(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	b.put(kinds.Organizations(), "acme", &resourcemanagerv1alpha1.Organization{})
	on := &iamv1alpha1.PolicyBinding{}
	on.Spec.RoleRef.Name, on.Spec.Subjects = "viewer", []iamv1alpha1.Subject{b.subject(kinds.IAMUsers(), "bob")}
	on.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{
		APIGroup: resourcemanagerv1alpha1.GroupVersion.Group, Kind: "Organization", Name: "acme", UID: b.api[b.keyOf(kinds.Organizations(), "acme")].UID,
	}
	b.put(kinds.PolicyBindings(), "on-acme", on)
	b.work()
	object := orgType + ":acme"
	if !b.holdsAny(object) {
		t.Fatal("nothing is on it")
	}
	b.drop(kinds.Organizations(), "acme")
	b.work()
	if b.holdsAny(object) {
		t.Error("what was on it stays")
	}
	b.put(kinds.Organizations(), "acme", &resourcemanagerv1alpha1.Organization{})
	b.work()
	if b.holdsAny(object) {
		t.Error("another of the name has it")
	}
	b.inStep("made anew")
}

func TestIndirectInheritorsFollowRole(t *testing.T) {
	b := newReconcilerEnv(t)
	base := func(permissions ...string) {
		b.put(kinds.IAMRoles(), "base", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: permissions}})
	}
	base(getDoc, getProject)
	for heir, of := range map[string]string{"heir": "base", "next": "heir", "last": "next"} {
		b.put(kinds.IAMRoles(), heir, &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{InheritedRoles: []iamv1alpha1.ScopedRoleReference{{Name: of}}}})
	}
	b.work()
	b.inStep("with a permission")
	base(getProject)
	b.work()
	if b.holdsAny("#" + iam.RelationOf(getDoc) + "@") {
		t.Errorf("without it the store holds %v", b.openFGA.holds())
	}
}
