package validating

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
)

// TestRuleSetFromInformerIncludesCountedRules requests a rule set while a rule is in the informer, but before the
// callbacks have run.
func TestRuleSetFromInformerIncludesCountedRules(t *testing.T) {
	v := informer.New(informer.Config{Cluster: "local", Log: slog.New(slog.DiscardHandler)})
	s := state.New(v, "local", infer.DefaultPolicy())
	g := &Validator{rules: newRuleSetReader(nil, infer.DefaultPolicy())}
	asked := make(chan *infer.RuleSet, 1)
	telling := func() {}
	v.OnChange(func(event.Key) { telling() })
	g.UseInformer(v, s)
	ask := func(count int) { asked <- g.rules.ruleSetFromInformer(v, s, "team", count) }
	rule := func(parent, child string, version int) {
		var object rolev1alpha1.ImpliedRoles
		object.Name, object.Namespace = parent, "team"
		object.Spec.InferenceRule.ParentRole, object.Spec.InferenceRule.ChildRole = parent, child
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Apply(t.Context(), event.Change{
			Key: event.Key{Cluster: "local", GroupResource: impliedRolesResource(), Namespace: "team", Name: parent},
			UID: parent, ResourceVersion: fmt.Sprint(version), Generation: int64(version), Object: data,
		}); err != nil {
			t.Fatal(err)
		}
	}
	implied := func(ruleSet *infer.RuleSet) string { return fmt.Sprint(ruleSet.ImpliedRoles(infer.Role{Name: "a"})) }
	rule("a", "b", 1)
	ask(1)
	if got := implied(<-asked); got != "[b]" {
		t.Fatalf("a implies %s", got)
	}
	telling = func() {
		go ask(2)
		for deadline := time.After(50 * time.Millisecond); len(asked) == 0; { // The call returns at once, or waits for all callbacks.
			select {
			case <-deadline:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}
	rule("b", "c", 2)
	if got := implied(<-asked); got != "[b c]" {
		t.Errorf("by two rules a implies %s", got)
	}
}
