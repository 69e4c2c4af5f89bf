//go:build integration

package impliedrole_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/validating"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// TestRuleHasJudgedCondition writes rules before the guard exists, while it serves, and after it was
// bypassed.
func TestRuleHasJudgedCondition(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.do("a>b")
	running := b.serveGuard()
	if c := b.condition("a>b", rolev1alpha1.Judged, infer.NotJudged); !strings.Contains(c.Message, "checked since") {
		t.Errorf("got message %q", c.Message)
	}
	b.do("c>d e>f")
	b.condition("c>d", rolev1alpha1.Judged, infer.JudgedByGuard)
	b.condition("e>f", rolev1alpha1.Judged, infer.JudgedByGuard)
	running.Stop()
	b.takeGuardAway()
	testenv.Eventually(t, soon, func() error { return b.triesRule("x>y") }) // The API server no longer calls the webhook.
	b.do("x>y early=x{mallory}")
	b.rule(ruleName("c>d"), role("c"), role("z"), false)
	client := b.client(b.serveGuard())
	for rule, reason := range map[string]string{"x>y": infer.NotJudged, "c>d": infer.NotJudged, "a>b": infer.NotJudged, "e>f": infer.JudgedByGuard} {
		b.condition(rule, rolev1alpha1.Judged, reason)
	}
	_, since, _ := strings.Cut(b.condition("x>y", rolev1alpha1.Judged, infer.NotJudged).Message, "; authors")
	testenv.Eventually(t, soon, func() error {
		if c := b.condition("e>f", rolev1alpha1.Judged, infer.JudgedByGuard); !strings.HasSuffix(c.Message, since) {
			return fmt.Errorf("got message %q", c.Message)
		}
		return nil
	})
	b.do("late=e{u}")
	drift, err := client.CheckDrift(t.Context(), &inferencev1.CheckDriftRequest{Namespace: b.namespace})
	if got := fmt.Sprint(drift.GetUnjudged()); err != nil || got != "[a.to.b c.to.d x.to.y]" || drift.GetUnjudgedTotal() != 3 {
		t.Errorf("drift lists %s, %v", got, err)
	}
	if got := drift.GetUnjudgedBindings(); !slices.Equal(got, []string{"early"}) || drift.GetUnjudgedBindingsTotal() != 1 {
		t.Errorf("got unjudged bindings %v, want the one that was made without webhooks", got)
	}
	b.rule(ruleName("c>d"), role("c"), role("d"), false)
	b.rule(ruleName("e>f"), role("e"), role("d"), false)
	b.condition("c>d", rolev1alpha1.Judged, infer.JudgedByGuard)
	b.condition("e>f", rolev1alpha1.Judged, infer.JudgedByGuard)
	b.condition("x>y", rolev1alpha1.Judged, infer.NotJudged)
}

// TestRuleWrittenWithoutWebhookIsNotJudged writes rules before the service notices that its webhooks are
// gone.
func TestRuleWrittenWithoutWebhookIsNotJudged(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.do("early>rule")
	b.serveGuard()
	b.condition("early>rule", rolev1alpha1.Judged, infer.NotJudged) // From here on, every author is checked.
	b.do("a>b c>d")
	b.condition("a>b", rolev1alpha1.Judged, infer.JudgedByGuard)
	b.condition("c>d", rolev1alpha1.Judged, infer.JudgedByGuard)
	var unjudged string
	testenv.Eventually(t, soon, func() error {
		unjudged += "x"
		b.takeGuardAway()
		b.rule(ruleName("c>d"), role("c"), role("z-"+unjudged), false)
		b.do(unjudged + ">y")
		_, err := b.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), validating.Name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the guard is back before all is written: %v", err)
		}
		return nil
	})
	b.condition(unjudged+">y", rolev1alpha1.Synced, infer.Synced) // The rule is synced, and Judged is not true.
	b.condition(unjudged+">y", rolev1alpha1.Judged, infer.NotJudged)
	b.condition("c>d", rolev1alpha1.Judged, infer.NotJudged)
	b.condition("a>b", rolev1alpha1.Judged, infer.JudgedByGuard)
	b.AwaitNoCalls()
	b.condition(unjudged+">y", rolev1alpha1.Judged, infer.NotJudged)
}

// takeGuardAway deletes the webhook configuration.
func (b *testEnv) takeGuardAway() {
	b.T.Helper()
	err := b.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(b.T.Context(), validating.Name, metav1.DeleteOptions{})
	if err != nil {
		b.T.Fatal(err)
	}
}

// triesRule writes a rule as a dry run.
func (b *testEnv) triesRule(rule string) error {
	parent, child, _ := strings.Cut(rule, ">")
	_, err := b.rules().Create(b.T.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": rolev1alpha1.GroupVersion.String(), "kind": kinds.ImpliedRoles().Kind, "metadata": map[string]any{"name": "tried"},
		"spec": map[string]any{"inference_rule": map[string]any{"parent_role": parent, "child_role": child}},
	}}, metav1.CreateOptions{DryRun: dry()})
	return err
}
