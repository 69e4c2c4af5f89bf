//go:build integration

package integration

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//nolint:gochecknoglobals // A schema.GroupVersionResource cannot be a constant.
var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	boxes       = schema.GroupVersionResource{Group: "test.example.org", Version: "v1", Resource: "boxes"}
)

const boxDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.test.example.org}
spec:
  group: test.example.org
  scope: Namespaced
  names: {kind: Box, plural: boxes, singular: box}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {min: {type: integer}, max: {type: integer}}
            x-kubernetes-validations:
            - rule: self.min <= self.max
              message: min is above max
`

func TestObjects(t *testing.T) {
	p := launch(t, t.TempDir())
	define(t, p)
	t.Run("a rule of a definition refuses an object", func(t *testing.T) {
		_, err := p.dynamic(t).Resource(boxes).Namespace("default").Create(t.Context(), box("bad", 2, 1), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "min is above max") {
			t.Errorf("create = %v, want the message of the rule", err)
		}
	})
	t.Run("server-side apply keeps owners of fields apart", func(t *testing.T) { applyTwice(t, p) })
	t.Run("an admission policy asks the authorizer", func(t *testing.T) { refuseByPolicy(t, p) })
	t.Run("a namespace finishes deleting with all it holds", func(t *testing.T) { deleteNamespace(t, p) })
	t.Run("what is owned goes with its owner, of a new kind too", func(t *testing.T) { deleteOwner(t, p) })
	t.Run("cluster roles aggregate", func(t *testing.T) { aggregate(t, p) })
	t.Run("a Secret of a service account gets its token", func(t *testing.T) { fillSecret(t, p) })
}

func define(t *testing.T, p *process) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(boxDefinition), &definition.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := p.dynamic(t).Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "boxes are served", func() bool {
		_, err := p.dynamic(t).Resource(boxes).Namespace("default").Create(t.Context(), box("first", 1, 2), metav1.CreateOptions{})
		return err == nil
	})
}

func box(name string, low, high int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.example.org/v1",
		"kind":       "Box",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"min": low, "max": high},
	}}
}

func applyTwice(t *testing.T, p *process) {
	client := p.dynamic(t).Resource(boxes).Namespace("default")
	if _, err := client.Apply(t.Context(), "applied", box("applied", 1, 2), metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		t.Fatal(err)
	}
	_, err := client.Apply(t.Context(), "applied", box("applied", 1, 3), metav1.ApplyOptions{FieldManager: "two"})
	if !apierrors.IsConflict(err) {
		t.Errorf("apply by another = %v, want a conflict", err)
	}
}

func refuseByPolicy(t *testing.T, p *process) {
	ctx, client := t.Context(), p.admin(t)
	policies := client.AdmissionregistrationV1()
	rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
	if _, err := policies.ValidatingAdmissionPolicies().Create(ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "guarded"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}},
			Validations: []admissionv1.Validation{{
				Expression: `object.metadata.name != "guarded" || !authorizer.group("").resource("secrets").check("get").allowed()`,
				Message:    "guarded from those who read secrets",
			}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "guarded"},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        "guarded",
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the policy refuses", func() bool {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "guarded"}}
		_, err := client.CoreV1().ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "guarded from those who read secrets")
	})
}

func deleteNamespace(t *testing.T, p *process) {
	ctx, namespaces := t.Context(), p.admin(t).CoreV1().Namespaces()
	if _, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.dynamic(t).Resource(boxes).Namespace("doomed").Create(ctx, box("inside", 1, 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := namespaces.Delete(ctx, "doomed", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() bool {
		_, err := namespaces.Get(ctx, "doomed", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func deleteOwner(t *testing.T, p *process) {
	ctx, client := t.Context(), p.dynamic(t).Resource(boxes).Namespace("default")
	owner, err := client.Create(ctx, box("owner", 1, 2), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := box("owned", 1, 2)
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "test.example.org/v1", Kind: "Box", Name: "owner", UID: owner.GetUID()}})
	if _, err := client.Create(ctx, owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(ctx, "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the owned object is gone", func() bool {
		_, err := client.Get(ctx, "owned", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func aggregate(t *testing.T, p *process) {
	ctx, roles := t.Context(), p.admin(t).RbacV1().ClusterRoles()
	if _, err := roles.Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "boxes", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{boxes.Group}, Resources: []string{boxes.Resource}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the role view reads boxes", func() bool {
		role, err := roles.Get(ctx, "view", metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, rule := range role.Rules {
			if len(rule.Resources) == 1 && rule.Resources[0] == boxes.Resource {
				return true
			}
		}
		return false
	})
}

func fillSecret(t *testing.T, p *process) {
	ctx, core := t.Context(), p.admin(t).CoreV1()
	eventually(t, "the default service account exists", func() bool {
		_, err := core.ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	if _, err := core.Secrets("default").Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Secret holds a token", func() bool {
		secret, err := core.Secrets("default").Get(ctx, "token", metav1.GetOptions{})
		return err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) > 0
	})
}
