//go:build integration

package apitest_test

import (
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/services/internal/testenv"
)

// right returns a rule with one verb on a resource of both API groups of IAM, optionally only on the named objects.
func right(verb, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{"iam.miloapis.com", "resourcemanager.miloapis.com"}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names,
	}
}

// All users in this test may create and update all kinds.
func TestIAMPolicyRequiresBindOrEscalate(t *testing.T) {
	server := testenv.StartKube(t)
	const role, viewer = "compute.example.com-workload-admin", "compute.example.com-workload-viewer"
	inherited := func(names ...string) []any {
		var all []any
		for _, name := range names {
			all = append(all, map[string]any{"name": name})
		}
		return all
	}
	owner := func(kind, name string) any {
		return map[string]any{"apiVersion": "resourcemanager.miloapis.com/v1alpha1", "kind": kind, "name": name, "uid": name}
	}
	owners := []string{"metadata", "ownerReferences"}
	config := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c"}
	tests := map[string]struct {
		rights []rbacv1.PolicyRule
		object string
		// owned adds an owner reference to the Organization acme.
		owned bool
		path  []string
		value any
		// update creates the object first, so that the request under test changes it.
		update bool
		// want is part of the refusal. If it is empty, the object must be accepted.
		want string
	}{
		"a binding":                       {object: "on-a-kind", want: "needs the verb bind on that roles.iam.miloapis.com"},
		"a binding of what is theirs":     {rights: []rbacv1.PolicyRule{right("bind", "roles", role)}, object: "on-an-object"},
		"a binding on all of a kind":      {rights: []rbacv1.PolicyRule{right("bind", "roles", role)}, object: "on-a-kind", want: "needs the verb bind on policybindings.iam.miloapis.com in all namespaces"},
		"a binding on all that there is":  {rights: []rbacv1.PolicyRule{right("bind", "roles", role), right("bind", "policybindings")}, object: "on-a-kind"},
		"a binding of something else":     {rights: []rbacv1.PolicyRule{right("bind", "roles", viewer)}, object: "on-a-kind", want: "it gives Role default/" + role},
		"a binding without a name":        {object: "on-a-kind", path: []string{"metadata"}, value: map[string]any{"generateName": "x-", "namespace": "default"}, want: "it gives Role default/" + role},
		"a binding of a role elsewhere":   {object: "on-a-kind", path: []string{"spec", "roleRef", "namespace"}, value: "elsewhere", want: "it gives Role elsewhere/" + role},
		"another subject":                 {object: "on-a-kind", path: []string{"spec", "subjects"}, value: subjects("User", "mallory", "u"), update: true, want: "the verb bind"},
		"a subject less":                  {object: "on-an-object", path: []string{"spec", "subjects"}, value: subjects("Group", "system:authenticated-users", ""), update: true},
		"a label of a binding":            {object: "on-a-kind", path: []string{"metadata", "labels"}, value: map[string]any{"a": "b"}, update: true},
		"a role with permissions":         {object: "nothing-yet", path: []string{"spec", "includedPermissions"}, value: []any{"a/b.c"}, want: "the verb escalate"},
		"a role without":                  {object: "nothing-yet"},
		"a permission more":               {object: "nothing-yet", path: []string{"spec", "includedPermissions"}, value: []any{"a/b.c"}, update: true, want: "the verb escalate"},
		"a permission more of their role": {rights: []rbacv1.PolicyRule{right("escalate", "roles", "nothing-yet")}, object: "nothing-yet", path: []string{"spec", "includedPermissions"}, value: []any{"a/b.c"}, update: true},
		"a permission less":               {object: role, path: []string{"spec", "includedPermissions"}, value: []any{"compute.example.com/workloads.create"}, update: true},
		"a role that inherits":            {object: "nothing-yet", path: []string{"spec", "inheritedRoles"}, value: inherited(viewer), update: true, want: "to inherit a role needs the verb bind"},
		"a role that inherits theirs":     {rights: []rbacv1.PolicyRule{right("bind", "roles", viewer)}, object: "nothing-yet", path: []string{"spec", "inheritedRoles"}, value: inherited(viewer), update: true},
		"a role that inherits more":       {rights: []rbacv1.PolicyRule{right("bind", "roles", viewer)}, object: "nothing-yet", path: []string{"spec", "inheritedRoles"}, value: inherited(viewer, role), update: true, want: "one after the other"},
		"a role that inherits many":       {rights: []rbacv1.PolicyRule{right("bind", "roles")}, object: "nothing-yet", path: []string{"spec", "inheritedRoles"}, value: inherited("a", "b", "c", "d", "e"), update: true},
		"a member":                        {object: "alice-staff", want: "verb bind on that groups.iam.miloapis.com"},
		"a member of theirs":              {rights: []rbacv1.PolicyRule{right("bind", "groups", "staff")}, object: "alice-staff"},
		"another member":                  {object: "alice-staff", path: []string{"spec", "userRef", "name"}, value: "mallory", update: true, want: "verb bind"},
		"a member elsewhere":              {object: "alice-staff", path: []string{"spec", "groupRef", "namespace"}, value: "elsewhere", want: "a member to Group elsewhere/staff"},
		"an owner":                        {object: "nothing-yet", path: owners, value: []any{owner("Organization", "evil")}, update: true, want: "it gives the object to Organization evil"},
		"an owner from the start":         {object: "staff", path: owners, value: []any{owner("Project", "evil")}, want: "it gives the object to Project evil"},
		"an owner that is theirs":         {rights: []rbacv1.PolicyRule{right("bind", "organizations", "ours")}, object: "nothing-yet", path: owners, value: []any{owner("Organization", "ours")}, update: true},
		"a project that is theirs":        {rights: []rbacv1.PolicyRule{right("bind", "projects", "ours")}, object: "alice", path: owners, value: []any{owner("Project", "ours"), config}, update: true},
		"an organization of that name":    {rights: []rbacv1.PolicyRule{right("bind", "projects", "ours")}, object: "alice", path: owners, value: []any{owner("Organization", "ours")}, update: true, want: "it gives the object to Organization ours"},
		"several owners":                  {rights: []rbacv1.PolicyRule{right("bind", "projects", "ours")}, object: "builder", path: owners, value: []any{owner("Project", "ours"), owner("Project", "evil")}, update: true, want: "one after the other"},
		"several owners of who may":       {rights: []rbacv1.PolicyRule{right("bind", "projects"), right("bind", "organizations")}, object: "builder", path: owners, value: []any{owner("Project", "a"), owner("Organization", "b")}, update: true},
		"an owner of another kind":        {object: "nothing-yet", path: owners, value: []any{config}, update: true},
		"a project":                       {object: "web", want: "verb bind on that organizations.resourcemanager.miloapis.com"},
		"a project of theirs":             {rights: []rbacv1.PolicyRule{right("bind", "organizations", "acme")}, object: "web"},
		"a project that moves":            {rights: []rbacv1.PolicyRule{right("bind", "organizations", "acme")}, object: "web", path: []string{"spec", "ownerRef", "name"}, value: "newer", update: true, want: "it gives a project to Organization newer"},
		"a project without its owner":     {object: "web", owned: true, path: owners, value: []any{}, update: true, want: "it gives a project to Organization acme"},
		"their project without its owner": {rights: []rbacv1.PolicyRule{right("bind", "organizations", "acme")}, object: "web", owned: true, path: owners, value: []any{}, update: true},
		"a label of a project":            {object: "web", owned: true, path: []string{"metadata", "labels"}, value: map[string]any{"a": "b"}, update: true},
	}
	// The requests that must be refused run first. Once they are refused, the policies are in force for the other
	// requests.
	for _, name := range slices.SortedFunc(maps.Keys(tests), func(a, b string) int { return strings.Compare(tests[b].want, tests[a].want) }) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			object := manifestNamed(t, test.object)
			if test.owned {
				acme := create(t, server, manifestNamed(t, "acme"))
				object = withField(t, object, owners, []any{map[string]any{
					"apiVersion": acme.GetAPIVersion(), "kind": acme.GetKind(), "name": acme.GetName(), "uid": string(acme.GetUID()),
				}})
			}
			if test.update {
				object = create(t, server, object)
			}
			if test.path != nil {
				object = withField(t, object, test.path, test.value)
			}
			api := clientAsAuthor(t, server, object, test.rights)
			testenv.Eventually(t, soon, func() (err error) {
				if test.update {
					_, err = api.Update(t.Context(), object, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
				} else {
					_, err = api.Create(t.Context(), object, dryRun())
				}
				return compareError(err, test.want)
			})
		})
	}
}

func TestIAMPolicyHoldsForApplyAndServiceAccounts(t *testing.T) {
	server := testenv.StartKube(t)
	object := manifestNamed(t, "on-a-kind")
	for user, write := range map[string]func(api dynamic.ResourceInterface) error{
		"person": func(api dynamic.ResourceInterface) error {
			_, err := api.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "person", DryRun: []string{metav1.DryRunAll}})
			return err
		},
		"system:serviceaccount:default:robot": func(api dynamic.ResourceInterface) error {
			_, err := api.Create(t.Context(), object, dryRun())
			return err
		},
	} {
		t.Run(user, func(t *testing.T) {
			api := clientAsWriter(t, server, object, user, nil)
			testenv.Eventually(t, soon, func() error {
				return compareError(write(api), "needs the verb bind on that roles.iam.miloapis.com")
			})
		})
	}
}

// The owner of a namespace has all rights in the namespace, and no rights elsewhere.
func TestIAMPolicyConfinesNamespaceOwner(t *testing.T) {
	server := testenv.StartKube(t)
	ref := func(kind, namespace string) map[string]any {
		on := map[string]any{"apiGroup": "resourcemanager.miloapis.com", "kind": kind, "name": "acme", "uid": "u"}
		if namespace != "" {
			on["namespace"] = namespace
		}
		return map[string]any{"resourceRef": on}
	}
	const one, two = "default", "kube-system"
	tests := map[string]struct {
		has  []string
		on   map[string]any
		want string
	}{
		"a kind":                    {[]string{one, two}, map[string]any{"resourceKind": map[string]any{"kind": "Organization"}}, "in all namespaces"},
		"an object of all":          {[]string{one, two}, ref("Organization", ""), "in all namespaces"},
		"an object elsewhere":       {[]string{one}, ref("Workload", two), "in namespace " + two},
		"an object there":           {[]string{one}, ref("Workload", one), ""},
		"an object of both of them": {[]string{one, two}, ref("Workload", two), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			user := "owner of " + name
			for _, namespace := range test.has {
				server.BindUser(t, namespace, user, "cluster-admin")
			}
			object := withField(t, manifestNamed(t, "on-a-kind"), []string{"spec", "resourceSelector"}, test.on)
			api := objectsAs(t, server, user, object)
			testenv.Eventually(t, soon, func() error {
				_, err := api.Create(t.Context(), object, dryRun())
				return compareError(err, test.want)
			})
		})
	}
}

// clientAsAuthor returns a client for u's kind as a new user. The user may write all kinds and has the given rights.
func clientAsAuthor(t *testing.T, server *testenv.KubeServer, u *unstructured.Unstructured, rights []rbacv1.PolicyRule) dynamic.ResourceInterface {
	t.Helper()
	return clientAsWriter(t, server, u, "author-"+rand.Text(), rights)
}

// clientAsWriter does the same as clientAsAuthor for a user with this name.
func clientAsWriter(t *testing.T, server *testenv.KubeServer, u *unstructured.Unstructured, user string, rights []rbacv1.PolicyRule) dynamic.ResourceInterface {
	t.Helper()
	server.GrantUser(t, "", user, append(rights, right("create", "*"), right("update", "*"), right("patch", "*"))...)
	return objectsAs(t, server, user, u)
}
