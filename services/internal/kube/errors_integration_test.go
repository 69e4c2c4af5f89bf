//go:build integration

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

const policyWithin = 60 * time.Second

func TestAdmissionRefusalIsForbiddenAndRetriable(t *testing.T) {
	server := testenv.StartKube(t)
	c := client(t, server, topology.StoreSync)
	apply(t, server, c, "guarded")
	clients := kubernetes.NewForConfigOrDie(server.AdminConfig()).AdmissionregistrationV1()
	stores := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{kinds.Stores().Group}, APIVersions: []string{"*"}, Resources: []string{kinds.Stores().Resource}},
	}}
	name := metav1.ObjectMeta{Name: "nobody.changes.stores"}
	remove := sync.OnceFunc(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = clients.ValidatingAdmissionPolicyBindings().Delete(ctx, name.Name, metav1.DeleteOptions{})
		_ = clients.ValidatingAdmissionPolicies().Delete(ctx, name.Name, metav1.DeleteOptions{})
	})
	defer remove()
	if _, err := clients.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{stores}},
		Validations:      []admissionv1.Validation{{Expression: "false"}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := clients.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: name,
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Each call adds another finalizer, because an existing one causes no write.
	add := func(i int) error {
		now, err := c.Get(t.Context(), kinds.Stores(), "", "guarded")
		if err == nil {
			_, err = c.AddFinalizer(t.Context(), kinds.Stores(), now, fmt.Sprintf("example.com/f%d", i))
		}
		return err
	}
	i := 0
	testenv.Eventually(t, policyWithin, func() error {
		i++
		if err := add(i); !errors.Is(err, kube.ErrForbidden) || !fault.IsUnavailable(err) {
			return fmt.Errorf("what the policy refuses: %w", errors.Join(err, errors.New("not forbidden")))
		}
		return nil
	})
	remove()
	testenv.Eventually(t, policyWithin, func() error { return add(0) })
}
