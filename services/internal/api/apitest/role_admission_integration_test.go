//go:build integration

package apitest_test

import (
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// ruleAuthor is a user who may write rules.
const ruleAuthor = "rule-author"

func TestImpliedRolesPolicyRefusesInvalidRules(t *testing.T) {
	rules := permitRules(t, ruleAuthor)
	tests := map[string]struct {
		rule rolev1alpha1.InferenceRule
		// want lists parts of the refusal. If it is empty, the rule must be accepted.
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
			expectError(t, err, test.want...)
		})
	}
}

func TestImpliedRolesPolicyRefusesProhibitedRoles(t *testing.T) {
	rules := permitRules(t, "") // Not even an administrator may write these rules.
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
			expectError(t, err, test.want...)
			if err != nil && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.inference_rule.child_role: ")) {
				t.Errorf("got %v, want the code 422 and the path of the field", err)
			}
		})
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

// permitRules lets a user write rules, and returns a client for rules as this user. It returns when the right and the
// policy are in force. An empty name means the administrator.
func permitRules(t *testing.T, user string) dynamic.ResourceInterface {
	t.Helper()
	server := testenv.StartKube(t)
	if user != "" {
		server.GrantUser(t, namespace, user, rbacv1.PolicyRule{
			APIGroups: []string{rolev1alpha1.GroupVersion.Group}, Resources: []string{rolev1alpha1.Resource}, Verbs: []string{"*"},
		})
	}
	rules := objectsAs(t, server, user, ruleObject(t, rolev1alpha1.InferenceRule{}))
	testenv.Eventually(t, soon, func() error {
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
