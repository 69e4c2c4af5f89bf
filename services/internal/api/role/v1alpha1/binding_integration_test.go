//go:build integration

package v1alpha1_test

import (
	"context"
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedrbacv1 "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/testbed"
)

// binder may make RoleBindings and Roles, and bind the Role reader. They hold no other role.
const binder = "binder"

// Kubernetes lets everybody bind a role that permits nothing; but a rule may give it a child.
func TestWhoeverBindsARoleMustBeAllowedToBindWhatItImplies(t *testing.T) {
	server := permitting(t)
	imply(t, server, "empty", "reader", "owner")
	imply(t, server, "modest", "reader")
	binders, admins := bindingsOf(t, server, binder), bindingsOf(t, server, "")
	if _, err := admins.Create(t.Context(), binding("standing", "empty", "alice", "bob"), metav1.CreateOptions{}); err != nil {
		t.Fatalf("who may bind everything: %v", err)
	}
	t.Cleanup(func() { _ = admins.Delete(context.WithoutCancel(t.Context()), "standing", metav1.DeleteOptions{}) })
	refused := []string{"Role empty implies Role owner by the rule empty-owner", binder + " may not bind", `"bind" on roles/owner`}
	tests := map[string]struct {
		binding *rbacv1.RoleBinding
		update  bool
		want    []string
	}{
		"a role that implies what they may not bind": {binding: binding("new", "empty", binder), want: refused},
		"a role that implies what they may bind":     {binding: binding("new", "modest", binder)},
		"a role that implies nothing":                {binding: binding("new", "free", binder)},
		"one subject more":                           {binding: binding("standing", "empty", "alice", "bob", binder), update: true, want: refused},
		"another subject":                            {binding: binding("standing", "empty", "alice", binder), update: true, want: refused},
		"one subject less":                           {binding: binding("standing", "empty", "alice"), update: true},
		"no subject":                                 {binding: binding("standing", "empty"), update: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var err error
			if test.update {
				_, err = binders.Update(t.Context(), test.binding, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			} else {
				_, err = binders.Create(t.Context(), test.binding, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			}
			expect(t, err, test.want)
		})
	}
}

// imply makes a rule for each child.
func imply(t *testing.T, server *testbed.KubeServer, parent string, children ...string) {
	t.Helper()
	rules := rulesOf(t, server, "")
	for _, child := range children {
		rule := ruleObject(t, rolev1alpha1.InferenceRule{ParentRole: parent, ChildRole: child})
		rule.SetName(parent + "-" + child)
		if _, err := rules.Create(t.Context(), rule, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func binding(name, role string, users ...string) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
	}
	for _, user := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user})
	}
	return b
}

// bindingsOf are the RoleBindings in the hands of a user, once the policy is in force; an
// administrator without a name. It makes the roles that they need.
func bindingsOf(t *testing.T, server *testbed.KubeServer, user string) typedrbacv1.RoleBindingInterface {
	t.Helper()
	cfg := server.Admin()
	if user == "" {
		return kubernetes.NewForConfigOrDie(cfg).RbacV1().RoleBindings(namespace)
	}
	allow(t, kubernetes.NewForConfigOrDie(cfg).RbacV1(), user)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	bindings := kubernetes.NewForConfigOrDie(cfg).RbacV1().RoleBindings(namespace)
	testbed.Eventually(t, soon, func() error {
		dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		_, good := bindings.Create(t.Context(), binding("probe", "modest", user), dry)
		_, bad := bindings.Create(t.Context(), binding("probe", "empty", user), dry)
		if bad == nil {
			return errors.New("the policy is not in force")
		}
		return good
	})
	return bindings
}

// allow lets a user make RoleBindings and bind reader, and makes roles that permit nothing.
func allow(t *testing.T, api typedrbacv1.RbacV1Interface, user string) {
	t.Helper()
	roles := map[string][]rbacv1.PolicyRule{"empty": nil, "modest": nil, "free": nil, user: {
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create", "update"}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, ResourceNames: []string{"reader"}, Verbs: []string{"bind"}},
	}}
	for name, rules := range roles {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Rules: rules}
		if _, err := api.Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = api.Roles(namespace).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
		})
	}
	if _, err := api.RoleBindings(namespace).Create(t.Context(), binding(user, user, user), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = api.RoleBindings(namespace).Delete(context.WithoutCancel(t.Context()), user, metav1.DeleteOptions{})
	})
}
