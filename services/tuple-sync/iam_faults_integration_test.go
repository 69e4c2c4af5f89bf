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
func (b *iamTestEnv) in(namespace string, do func()) {
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
func (b *envWithRoles) mayOnly(user string, permissions ...string) {
	b.T.Helper()
	for _, permission := range []string{getProject, editProject} {
		if got := b.may(user, permission); got != slices.Contains(permissions, permission) {
			b.T.Errorf("%s may %s: %v", user, permission, got)
		}
	}
}

func TestObjectsOfSameNameInTwoNamespacesAreDistinct(t *testing.T) {
	const elsewhere, groupType, getGroup = "elsewhere", "iam.miloapis.com/Group", "iam.miloapis.com/groups.get"
	b := newEnvWithRoles(t)
	b.register("group", groupType, "groups")
	b.remodel()
	b.role("joiner", nil, getGroup)
	of := map[string]iamv1alpha1.Subject{}
	for _, name := range []string{"carol", "dave", "erin"} {
		of[name] = user(b.user(name))
	}
	b.in(elsewhere, func() {
		others := b.apply(kinds.IAMGroups(), "staff", nil)
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
	b.AwaitCaughtUp(topology.TupleSync)
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

func TestUnregisteredVerbIsRevoked(t *testing.T) {
	b := newEnvWithRoles(t)
	b.ready(kinds.IAMRoles(), "editor", bound)
	spec := iamv1alpha1.ProtectedResourceSpec{Plural: "projects", Singular: "project", Permissions: []string{"get"}}
	spec.ServiceRef.Name, spec.Kind, _ = strings.Cut(projectType, "/")
	b.Kube.Apply(t, kinds.ProtectedResources(), "project", spec)
	b.remodel()
	b.ready(kinds.IAMRoles(), "editor", iamv1alpha1.InvalidPermissions)
	b.AwaitCaughtUp(topology.TupleSync)
	relation := "#" + iam.RelationOf(editProject) + "@"
	if held := b.holds(b.id); slices.ContainsFunc(held, func(t string) bool { return strings.Contains(t, relation) }) {
		t.Errorf("the store holds %v", held)
	}
	b.awaits(true, "bob", getProject)
}

// OpenFGA takes a hundred tuples at a time.
func TestBindingOfManySubjectsIsAppliedAndRemoved(t *testing.T) {
	b := newEnvWithRoles(t)
	b.AwaitCaughtUp(topology.TupleSync)
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
