//go:build integration

package v1alpha1_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/testbed"
)

const (
	namespace = "default"
	// author may write rules.
	author = "author"
	// soon is time enough for a policy or a role to take effect.
	soon = 60 * time.Second
)

func TestWhatARuleMayNotSay(t *testing.T) {
	rules := rulesOf(t, permitting(t), author)
	tests := map[string]struct {
		rule rolev1alpha1.InferenceRule
		// want is what the refusal says; nothing means that there is none.
		want []string
	}{
		"a child":                      {rule: rolev1alpha1.InferenceRule{ParentRole: "admin", ChildRole: "writer"}},
		"a ClusterRole":                {rule: rolev1alpha1.InferenceRule{ParentRole: "admin", ChildRole: "view", ChildKind: "ClusterRole"}},
		"the role itself":              {rolev1alpha1.InferenceRule{ParentRole: "writer", ChildRole: "writer"}, []string{"cannot imply itself", "choose another"}},
		"itself, the kind spelled out": {rolev1alpha1.InferenceRule{ParentRole: "writer", ChildRole: "writer", ChildKind: "Role"}, []string{"cannot imply itself"}},
		"a namesake of the other kind": {rule: rolev1alpha1.InferenceRule{ParentRole: "writer", ParentKind: "ClusterRole", ChildRole: "writer"}},
		"no child":                     {rolev1alpha1.InferenceRule{ParentRole: "writer"}, []string{"child_role"}},
		"what is no role's name":       {rolev1alpha1.InferenceRule{ParentRole: "a/b", ChildRole: "writer"}, []string{"not a role name"}},
		"a kind that is none":          {rolev1alpha1.InferenceRule{ParentRole: "a", ChildRole: "writer", ChildKind: "role"}, []string{"child_kind"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := rules.Create(t.Context(), ruleObject(t, test.rule), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			expect(t, err, test.want)
		})
	}
}

func TestNobodyGetsAProhibitedRoleByARule(t *testing.T) {
	rules := rulesOf(t, permitting(t), "") // Not even an administrator.
	tests := map[string]struct {
		rule rolev1alpha1.InferenceRule
		want []string
	}{
		"cluster-admin":               {rolev1alpha1.InferenceRule{ParentRole: "a", ChildRole: "cluster-admin", ChildKind: "ClusterRole"}, []string{"ClusterRole cluster-admin must not follow", "choose another child_role"}},
		"a ClusterRole of the system": {rolev1alpha1.InferenceRule{ParentRole: "a", ChildRole: "system:node", ChildKind: "ClusterRole"}, []string{"system:node"}},
		"a Role of the system":        {rolev1alpha1.InferenceRule{ParentRole: "a", ChildRole: "system:x"}, []string{"system:x"}},
		"a Role named cluster-admin":  {rule: rolev1alpha1.InferenceRule{ParentRole: "a", ChildRole: "cluster-admin"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := rules.Create(t.Context(), ruleObject(t, test.rule), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			expect(t, err, test.want)
		})
	}
}

func expect(t *testing.T, err error, want []string) {
	t.Helper()
	if len(want) == 0 {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the refusal %q lacks %q", err, part)
		}
	}
}

func ruleObject(t *testing.T, rule rolev1alpha1.InferenceRule) *unstructured.Unstructured {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rolev1alpha1.ImpliedRoles{
		TypeMeta:   metav1.TypeMeta{APIVersion: rolev1alpha1.GroupVersion.String(), Kind: "ImpliedRoles"},
		ObjectMeta: metav1.ObjectMeta{Name: "rule", Namespace: namespace}, Spec: rolev1alpha1.ImpliedRolesSpec{InferenceRule: rule},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// rulesOf are the rules in the hands of a user, once roles and policy are in force; an
// administrator without a name.
func rulesOf(t *testing.T, server *testbed.KubeServer, user string) dynamic.ResourceInterface {
	t.Helper()
	cfg := server.Admin()
	if user != "" {
		cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	}
	rules := dynamic.NewForConfigOrDie(cfg).Resource(rolev1alpha1.GroupVersion.WithResource(rolev1alpha1.Resource)).Namespace(namespace)
	testbed.Eventually(t, soon, func() error {
		dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		_, good := rules.Create(t.Context(), ruleObject(t, rolev1alpha1.InferenceRule{ParentRole: "a", ChildRole: "reader"}), dry)
		_, bad := rules.Create(t.Context(), ruleObject(t, rolev1alpha1.InferenceRule{ParentRole: "a", ChildRole: "system:x"}), dry)
		if bad == nil {
			return errors.New("the policy is not in force")
		}
		return good
	})
	return rules
}

// permitting is a server on which the author may write rules.
func permitting(t *testing.T) *testbed.KubeServer {
	t.Helper()
	server := testbed.Kube(t)
	api := kubernetes.NewForConfigOrDie(server.Admin())
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: author, Namespace: namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{rolev1alpha1.GroupVersion.Group}, Resources: []string{rolev1alpha1.Resource}, Verbs: []string{"*"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: author, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: author},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: author}},
	}
	_, err := api.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{})
	if err == nil {
		_, err = api.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context()) // What is left over makes the next test fail.
		_ = api.RbacV1().RoleBindings(namespace).Delete(ctx, author, metav1.DeleteOptions{})
		_ = api.RbacV1().Roles(namespace).Delete(ctx, author, metav1.DeleteOptions{})
	})
	return server
}
