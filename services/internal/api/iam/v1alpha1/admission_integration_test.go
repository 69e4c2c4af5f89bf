//go:build integration

package v1alpha1_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/testbed"
)

// soon is time enough for a policy or a role to take effect.
const soon = 60 * time.Second

// right is a verb on resources of the two groups, or on one of them.
func right(verb, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{"iam.miloapis.com", "resourcemanager.miloapis.com"}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names,
	}
}

// Everybody here may create and update all of these kinds.
func TestNobodyGivesWhatIsNotTheirsToGive(t *testing.T) {
	server := testbed.Kube(t)
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
		// owned says that its Organization owns the object that is there by a reference, too.
		owned bool
		path  []string
		value any
		// update says that the object is there, and that this is a change of it.
		update bool
		// want is what the refusal says; empty means that there is none.
		want string
	}{
		"a binding":                       {object: "on-a-kind", want: "takes the verb bind on that roles.iam.miloapis.com"},
		"a binding of what is theirs":     {rights: []rbacv1.PolicyRule{right("bind", "roles", role)}, object: "on-an-object"},
		"a binding on all of a kind":      {rights: []rbacv1.PolicyRule{right("bind", "roles", role)}, object: "on-a-kind", want: "takes the verb bind on policybindings.iam.miloapis.com in all namespaces"},
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
		"a role that inherits":            {object: "nothing-yet", path: []string{"spec", "inheritedRoles"}, value: inherited(viewer), update: true, want: "to inherit a role takes the verb bind"},
		"a role that inherits theirs":     {rights: []rbacv1.PolicyRule{right("bind", "roles", viewer)}, object: "nothing-yet", path: []string{"spec", "inheritedRoles"}, value: inherited(viewer), update: true},
		"a role that inherits more":       {rights: []rbacv1.PolicyRule{right("bind", "roles", viewer)}, object: "nothing-yet", path: []string{"spec", "inheritedRoles"}, value: inherited(viewer, role), update: true, want: "one after the other"},
		"a role that inherits many":       {rights: []rbacv1.PolicyRule{right("bind", "roles")}, object: "nothing-yet", path: []string{"spec", "inheritedRoles"}, value: inherited("a", "b", "c", "d", "e"), update: true},
		"a member":                        {object: "alice-staff", want: "verb bind on that groups.iam.miloapis.com"},
		"a member of theirs":              {rights: []rbacv1.PolicyRule{right("bind", "groups", "staff")}, object: "alice-staff"},
		"another member":                  {object: "alice-staff", path: []string{"spec", "userRef", "name"}, value: "mallory", update: true, want: "verb bind"},
		"a member elsewhere":              {object: "alice-staff", path: []string{"spec", "groupRef", "namespace"}, value: "elsewhere", want: "a member of Group elsewhere/staff"},
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
	// What is refused first: then the policies are in force, and what is let pass is let pass by them.
	for _, name := range slices.SortedFunc(maps.Keys(tests), func(a, b string) int { return strings.Compare(tests[b].want, tests[a].want) }) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			object := manifestNamed(t, test.object)
			if test.owned {
				acme := create(t, server, manifestNamed(t, "acme"))
				object = changed(t, object, owners, []any{map[string]any{
					"apiVersion": acme.GetAPIVersion(), "kind": acme.GetKind(), "name": acme.GetName(), "uid": string(acme.GetUID()),
				}})
			}
			if test.update {
				object = create(t, server, object)
			}
			if test.path != nil {
				object = changed(t, object, test.path, test.value)
			}
			api := asUser(t, server, object, test.rights)
			testbed.Eventually(t, soon, func() (err error) {
				if test.update {
					_, err = api.Update(t.Context(), object, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
				} else {
					_, err = api.Create(t.Context(), object, dryRun())
				}
				return unlike(err, test.want)
			})
		})
	}
}

// Whoever writes a binding otherwise, or is no person, is asked for the same.
func TestNoWayRoundLeadsToABinding(t *testing.T) {
	server := testbed.Kube(t)
	object := manifestNamed(t, "on-a-kind")
	path := "ServiceAccount default/robot"
	for name, write := range map[string]func(api dynamic.ResourceInterface) error{
		"server-side apply": func(api dynamic.ResourceInterface) error {
			_, err := api.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "person", DryRun: []string{metav1.DryRunAll}})
			return err
		},
		path: func(api dynamic.ResourceInterface) error {
			_, err := api.Create(t.Context(), object, dryRun())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			user := ""
			if name == path {
				user = "system:serviceaccount:default:robot"
			}
			testbed.Eventually(t, soon, func() error {
				return unlike(write(as(t, server, object, user, nil)), "takes the verb bind on that roles.iam.miloapis.com")
			})
		})
	}
}

// Who may do anything in a namespace has all that it takes there, but for what is elsewhere.
func TestWhoHasAllOfANamespaceGivesNothingBeyond(t *testing.T) {
	server := testbed.Kube(t)
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
				mayAll(t, server, user, namespace)
			}
			cfg := server.Admin()
			cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
			object := changed(t, manifestNamed(t, "on-a-kind"), []string{"spec", "resourceSelector"}, test.on)
			api := dynamic.NewForConfigOrDie(cfg).Resource(object.GroupVersionKind().GroupVersion().WithResource(resourceOf(object))).Namespace(one)
			testbed.Eventually(t, soon, func() error {
				_, err := api.Create(t.Context(), object, dryRun())
				return unlike(err, test.want)
			})
		})
	}
}

// mayAll lets a user do anything in a namespace.
func mayAll(t *testing.T, server *testbed.KubeServer, user, namespace string) {
	t.Helper()
	api := kubernetes.NewForConfigOrDie(server.Admin()).RbacV1().RoleBindings(namespace)
	made, err := api.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "owner-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), made.Name, metav1.DeleteOptions{}) })
}

// Who may only write statuses changes neither what a binding gives nor what it belongs to.
func TestAStatusGivesNothing(t *testing.T) {
	server := testbed.Kube(t)
	stored := create(t, server, manifestNamed(t, "on-a-kind"))
	other := changed(t, stored, []string{"spec", "subjects"}, subjects("User", "mallory", "u"))
	other = changed(t, other, []string{"metadata", "ownerReferences"}, []any{map[string]any{
		"apiVersion": "resourcemanager.miloapis.com/v1alpha1", "kind": "Organization", "name": "evil", "uid": "evil",
	}})
	api := asUser(t, server, stored, nil)
	testbed.Eventually(t, soon, func() error {
		now, err := api.UpdateStatus(t.Context(), other, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		if now.GetGeneration() != stored.GetGeneration() || len(now.GetOwnerReferences()) > 0 {
			return errors.New("the status changed the object")
		}
		return nil
	})
}

// Who may only write statuses says neither what a ProtectedResource has, nor for whom a membership is, nor to whom a project
// belongs, and takes none of it away.
func TestNobodyRecordsWhatIsNotTheirsToRecord(t *testing.T) {
	server := testbed.Kube(t)
	for name, test := range map[string]struct {
		object, resource, field string
		is, becomes             map[string]any
	}{
		"what a ProtectedResource has": {
			"compute.example.com-workload", "protectedresources", "registered",
			map[string]any{"group": "a.example", "kind": "Tree", "plural": "trees", "generation": int64(1)},
			map[string]any{"group": "a.example", "kind": "Wood", "plural": "trees", "generation": int64(1)},
		},
		"for whom a membership is": {
			"alice-staff", "groupmemberships", "user", map[string]any{"name": "alice", "uid": "1"}, map[string]any{"name": "alice", "uid": "2"},
		},
		"to whom a project belongs": {
			"web", "projects", "organization", map[string]any{"name": "acme", "uid": "1"}, map[string]any{"name": "acme", "uid": "2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored := create(t, server, manifestNamed(t, test.object))
			path := []string{"status", test.field}
			service := asUser(t, server, stored, []rbacv1.PolicyRule{right("record", test.resource, stored.GetName())})
			testbed.Eventually(t, soon, func() error {
				now, err := service.UpdateStatus(t.Context(), changed(t, stored, path, test.is), metav1.UpdateOptions{})
				if err == nil {
					stored = now
				}
				return err
			})
			api := asUser(t, server, stored, []rbacv1.PolicyRule{right("record", test.resource, "another")})
			for what, value := range map[string]any{"another": test.becomes, "none": nil} {
				testbed.Eventually(t, soon, func() error {
					_, err := api.UpdateStatus(t.Context(), changed(t, stored, path, value), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
					if err = unlike(err, "takes the verb record"); err != nil {
						return fmt.Errorf("%s: %w", what, err)
					}
					return nil
				})
			}
			testbed.Eventually(t, soon, func() error {
				other := changed(t, stored, []string{"status", "conditions"}, []any{map[string]any{
					"type": "Odd", "status": "True", "reason": "Odd", "message": "odd", "lastTransitionTime": "2026-01-02T03:04:05Z",
				}})
				_, err := api.UpdateStatus(t.Context(), other, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
				return err
			})
		})
	}
}

// Nor that the model has no room for a kind, by which all would go that is had of it, nor that it has.
func TestNobodySaysWhatThereIsRoomFor(t *testing.T) {
	server := testbed.Kube(t)
	stored := create(t, server, manifestNamed(t, "compute.example.com-workload"))
	path, service := []string{"status", "conditions"}, []rbacv1.PolicyRule{right("record", "protectedresources", stored.GetName())}
	says := func(rights []rbacv1.PolicyRule, want string, conditions ...any) {
		t.Helper()
		api := asUser(t, server, stored, rights)
		testbed.Eventually(t, soon, func() error {
			now, err := api.UpdateStatus(t.Context(), changed(t, stored, path, conditions), metav1.UpdateOptions{})
			if err == nil && want == "" {
				stored = now
			}
			return unlike(err, want)
		})
	}
	is := func(typ, status, reason string) any {
		return map[string]any{"type": typ, "status": status, "reason": reason, "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z"}
	}
	const refused = "takes the verb record"
	room, none, observed := is("Registered", "True", "InForce"), is("Registered", "False", "LimitExceeded"), is("Observed", "True", "Followed")
	says(nil, refused, none)
	says(service, "", room)
	says(nil, refused, none)
	says(nil, refused, observed)
	says(nil, "", room, observed)
	says(service, "", none, observed)
	says(nil, refused, room, observed)
}

// asUser is the way of somebody new to objects, who may write them and has some rights besides.
func asUser(t *testing.T, server *testbed.KubeServer, u *unstructured.Unstructured, rights []rbacv1.PolicyRule) dynamic.ResourceInterface {
	t.Helper()
	return as(t, server, u, "", rights)
}

// as is that way of a user; without a name of somebody new.
func as(t *testing.T, server *testbed.KubeServer, u *unstructured.Unstructured, user string, rights []rbacv1.PolicyRule) dynamic.ResourceInterface {
	t.Helper()
	api := kubernetes.NewForConfigOrDie(server.Admin()).RbacV1()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "author-"}, Rules: append(rights, right("create", "*"), right("update", "*"), right("patch", "*"))}
	role, err := api.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	user = cmp.Or(user, role.Name)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}
	if _, err = api.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = api.ClusterRoleBindings().Delete(ctx, role.Name, metav1.DeleteOptions{})
		_ = api.ClusterRoles().Delete(ctx, role.Name, metav1.DeleteOptions{})
	})
	cfg := server.Admin()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	return dynamic.NewForConfigOrDie(cfg).Resource(u.GroupVersionKind().GroupVersion().WithResource(resourceOf(u))).Namespace(u.GetNamespace())
}
