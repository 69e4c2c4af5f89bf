//go:build integration

package tuplesync_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// in makes objects in another namespace, which stays.
func (b *iamBed) in(namespace string, do func()) {
	b.T.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}}
	_, err := b.Objects.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Apply(b.T.Context(), namespace, u, metav1.ApplyOptions{FieldManager: "test"})
	if err != nil {
		b.T.Fatal(err)
	}
	b.namespace = namespace
	defer func() { b.namespace = ns }()
	do()
}

// mayOnly wants a user to have all of some permissions on the project web, and of the others none.
func (b *peopled) mayOnly(user string, permissions ...string) {
	b.T.Helper()
	for _, permission := range []string{getProject, editProject} {
		if got := b.may(user, permission); got != slices.Contains(permissions, permission) {
			b.T.Errorf("%s may %s: %v", user, permission, got)
		}
	}
}

func TestWhatHasOneNameInTwoNamespacesIsKeptApart(t *testing.T) {
	const elsewhere, groupType, getGroup = "elsewhere", "iam.miloapis.com/Group", "iam.miloapis.com/groups.get"
	b := newPeopled(t)
	b.register("group", groupType, "groups")
	b.remodel()
	b.role("joiner", nil, getGroup)
	of := map[string]iamv1alpha1.Subject{}
	for _, name := range []string{"carol", "dave", "erin"} {
		of[name] = user(b.user(name))
	}
	b.in(elsewhere, func() {
		others := b.apply(kinds.Groups(), "staff", nil)
		b.join("erin-staff", "erin", others)
		b.role("viewer", nil)
		b.role("editor", []string{"viewer"}, editProject) // It inherits the viewer of its own namespace, which gives nothing.
		b.bind("own", "editor", on(projectType, b.web), of["carol"])
		b.apply(kinds.PolicyBindings(), "other", iamv1alpha1.PolicyBindingSpec{
			RoleRef: iamv1alpha1.RoleReference{Name: "editor", Namespace: ns}, Subjects: []iamv1alpha1.Subject{of["dave"]}, ResourceSelector: on(projectType, b.web),
		})
		for _, name := range []string{"own", "other"} {
			b.ready(kinds.PolicyBindings(), name, bound)
		}
		b.ready(kinds.GroupMemberships(), "erin-staff", belonging)
	})
	b.bind("on-staff", "joiner", on(groupType, b.staff), of["erin"])
	b.ready(kinds.PolicyBindings(), "on-staff", bound)
	b.CaughtUp(topology.TupleSync)
	b.mayOnly("carol", editProject)
	b.mayOnly("dave", getProject, editProject)
	b.mayOnly("erin")
	for namespace, want := range map[string]bool{ns: true, elsewhere: false} {
		if got := b.mayOn("erin", getGroup, groupType, metav1.ObjectMeta{Namespace: namespace, Name: "staff"}); got != want {
			t.Errorf("erin may get the group %s/staff: %v", namespace, got)
		}
	}

	b.in(elsewhere, func() { b.remove(kinds.IAMRoles(), "editor") })
	b.awaits(false, "carol", editProject)
	b.mayBoth(true, "dave")
	b.mayBoth(true, "bob")
}

func TestWhoIsMadeAnewStartsWithNothing(t *testing.T) {
	b := newPeopled(t)
	builder := b.apply(kinds.IAMServiceAccounts(), "builder", iamv1alpha1.ServiceAccountSpec{})
	b.bind("builder", "editor", on(projectType, b.web), iamv1alpha1.Subject{Kind: "ServiceAccount", Name: "builder", UID: string(builder.UID)})
	b.ready(kinds.PolicyBindings(), "builder", bound)
	for _, name := range []string{"bob", "staff"} {
		b.ready(kinds.PolicyBindings(), name, bound)
	}
	for name, kind := range map[string]kinds.Kind{"bob": kinds.Users(), "staff": kinds.Groups(), "builder": kinds.IAMServiceAccounts()} {
		b.remove(kind, name)
		b.awaitNone(kind, name)
	}
	b.user("bob")
	again := b.apply(kinds.IAMServiceAccounts(), "builder", iamv1alpha1.ServiceAccountSpec{})
	b.apply(kinds.Groups(), "staff", nil)
	for _, name := range []string{"bob", "staff", "builder"} {
		b.ready(kinds.PolicyBindings(), name, iamv1alpha1.SubjectValidationFailed)
	}
	b.ready(kinds.GroupMemberships(), "alice-staff", belonging) // She is in the group of that name, which has nothing.
	b.CaughtUp(topology.TupleSync)
	b.mayOnly("bob")
	b.mayOnly("alice")
	for _, held := range b.holds(b.id) {
		for _, uid := range []string{string(builder.UID), string(again.UID), string(b.staff.UID)} {
			if strings.Contains(held, uid) {
				t.Errorf("the store holds %s", held)
			}
		}
	}
}

// Roles that inherit each other give what any of them gives, as long as it does.
func TestRolesThatInheritEachOtherEnd(t *testing.T) {
	b := newPeopled(t)
	carol := b.user("carol")
	b.role("one", []string{"two"}, getProject)
	b.role("two", []string{"three"})
	b.role("three", []string{"one"}, editProject)
	b.bind("carol", "two", on(projectType, b.web), user(carol))
	b.ready(kinds.PolicyBindings(), "carol", bound)
	b.mayBoth(true, "carol")
	b.role("three", []string{"one"})
	b.awaits(false, "carol", editProject)
	b.awaits(true, "carol", getProject)
	b.role("two", nil) // The cycle is cut.
	b.awaits(false, "carol", getProject)
}

// These two permissions have one relation: a role that has the later one gives nothing by it, and not the other.
func TestOfPermissionsWithOneRelationTheLaterGivesNothing(t *testing.T) {
	b := newPeopled(t)
	const first, second = "a.example/First", "a.example/Second"
	b.register("collision-1", first, "p4ca21b606f2a")
	b.register("collision-2", second, "qac3cc6c88f9f")
	b.remodel()
	carol, dave := b.user("carol"), b.user("dave")
	b.role("first", nil, "a.example/p4ca21b606f2a.get")
	b.role("second", nil, "a.example/qac3cc6c88f9f.get", "a.example/qac3cc6c88f9f.update")
	for _, typ := range []string{first, second} {
		_, kind, _ := strings.Cut(strings.ToLower(typ), "/")
		b.bind("carol-"+kind, "first", on(typ), user(carol))
		b.bind("dave-"+kind, "second", on(typ), user(dave))
	}
	b.ready(kinds.IAMRoles(), "first", bound)
	b.ready(kinds.IAMRoles(), "second", iamv1alpha1.InvalidPermissions)
	for _, name := range []string{"carol-first", "carol-second", "dave-first", "dave-second"} {
		b.ready(kinds.PolicyBindings(), name, bound)
	}
	b.CaughtUp(topology.TupleSync)
	relation := iam.Relation("a.example/p4ca21b606f2a.get")
	for who, want := range map[string]bool{"carol": true, "dave": false} {
		if got := b.mayOn(who, "a.example/p4ca21b606f2a.get", first, metav1.ObjectMeta{Name: "x"}); got != want {
			t.Errorf("%s has the relation %s: %v", who, relation, got)
		}
	}
	if !b.mayOn("dave", "a.example/qac3cc6c88f9f.update", second, metav1.ObjectMeta{Name: "x"}) {
		t.Error("a permission is lost by another's collision")
	}
}

func TestAVerbThatIsRegisteredNoMoreIsGivenNoMore(t *testing.T) {
	b := newPeopled(t)
	b.ready(kinds.IAMRoles(), "editor", bound)
	spec := iamv1alpha1.ProtectedResourceSpec{Plural: "projects", Singular: "project", Permissions: []string{"get"}}
	spec.ServiceRef.Name, spec.Kind, _ = strings.Cut(projectType, "/")
	b.Kube.Apply(t, kinds.ProtectedResources(), "project", spec)
	b.remodel()
	b.ready(kinds.IAMRoles(), "editor", iamv1alpha1.InvalidPermissions)
	b.CaughtUp(topology.TupleSync)
	relation := "#" + iam.Relation(editProject) + "@"
	if held := b.holds(b.id); slices.ContainsFunc(held, func(t string) bool { return strings.Contains(t, relation) }) {
		t.Errorf("the store holds %v", held)
	}
	b.awaits(true, "bob", getProject)
}

// A kind is usable though a parent of it is unknown, or would be below it.
func TestAKindWithAParentThatCannotBeIsUsable(t *testing.T) {
	b := newPeopled(t)
	b.register("organization", orgType, "organizations", projectType) // Below its own child.
	b.register("project", projectType, "projects", orgType, "a.example/None")
	b.remodel()
	carol := b.user("carol")
	acme := b.org("acme")
	b.bind("carol", "editor", on(orgType, acme), user(carol))
	b.ready(kinds.PolicyBindings(), "carol", bound)
	b.CaughtUp(topology.TupleSync)
	b.mayBoth(true, "bob")
	b.mayBoth(true, "alice")
}

// OpenFGA takes a hundred tuples at a time.
func TestABindingOfManySubjectsActsForAllAndIsGoneForAll(t *testing.T) {
	b := newPeopled(t)
	b.CaughtUp(topology.TupleSync)
	before := b.holds(b.id)
	var subjects []iamv1alpha1.Subject
	for i := range 250 {
		subjects = append(subjects, iamv1alpha1.Subject{Kind: "Group", Name: fmt.Sprintf("oidc:team_%d", i)})
	}
	b.bind("many", "viewer", on(projectType, b.web), subjects...)
	b.ready(kinds.PolicyBindings(), "many", bound)
	if n := len(b.holds(b.id)) - len(before); n != 252 { // And the grant with its role.
		t.Errorf("%d tuples were added", n)
	}
	b.bind("many", "viewer", on(projectType, b.web), subjects[:10]...)
	testenv.Eventually(t, soon, func() error {
		if n := len(b.holds(b.id)) - len(before); n != 12 {
			return fmt.Errorf("%d tuples are left", n)
		}
		return nil
	})
	b.remove(kinds.PolicyBindings(), "many")
	b.awaitTuples(b.id, before...)
}
