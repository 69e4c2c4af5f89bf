package impliedrole

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
)

func TestStatusListsSomeChildrenAndCountsOthers(t *testing.T) {
	for children, all := range map[int]bool{0: true, 3: true, maxChildren: true, maxChildren + 1: false, 10_000: false} {
		var roles []infer.Role
		for i := range children {
			roles = append(roles, infer.Role{Name: fmt.Sprintf("%0253d", i), Cluster: true})
		}
		l := newChildRoleList(roles)
		write := buildRuleStatus(state.Rule{Value: &rolev1alpha1.ImpliedRoles{}}, infer.RuleStatus{
			Parent: infer.Role{Name: "a"}, Accepted: condition.New(rolev1alpha1.Accepted, true, infer.Accepted, ""),
		}, l)
		status, ok := write.Fields.(rolev1alpha1.ImpliedRolesStatus)
		if !ok {
			t.Fatalf("got fields of type %T", write.Fields)
		}
		data, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 32<<10 || len(l.names) != min(children, maxChildren) || l.more == all {
			t.Errorf("%d children: got %d names in %d bytes, more %v", children, len(l.names), len(data), l.more)
		}
		accepted := meta.FindStatusCondition(status.Conditions, rolev1alpha1.Accepted)
		if all != (accepted.Message == "") || accepted.Status != metav1.ConditionTrue {
			t.Errorf("%d children: got condition %+v", children, accepted)
		}
	}
}

// TestEventReportsNewFaultOfRule changes the status of one rule repeatedly.
func TestEventReportsNewFaultOfRule(t *testing.T) {
	rule := &rolev1alpha1.ImpliedRoles{}
	accepted := condition.New(rolev1alpha1.Accepted, true, infer.Accepted, "")
	fine := infer.RuleStatus{
		Accepted: accepted, Acyclic: condition.New(rolev1alpha1.Acyclic, true, infer.NoCycle, ""), Synced: condition.New(rolev1alpha1.Synced, true, infer.Synced, ""),
	}
	with := func(c condition.Condition) infer.RuleStatus {
		s := fine
		for _, of := range []*condition.Condition{&s.Accepted, &s.Acyclic, &s.Synced} {
			if of.Type == c.Type {
				*of = c
			}
		}
		return s
	}
	for i, step := range []struct {
		status infer.RuleStatus
		want   string
	}{
		{fine, ""},
		{with(condition.New(rolev1alpha1.Acyclic, false, infer.InCycle, "a -> b -> a")), "InCycle: a -> b -> a"},
		{with(condition.New(rolev1alpha1.Acyclic, false, infer.InCycle, "a -> b -> c -> a")), ""},
		{fine, ""},
		{with(condition.New(rolev1alpha1.Acyclic, false, infer.InCycle, "again")), "InCycle: again"},
		{with(condition.New(rolev1alpha1.Accepted, false, infer.ProhibitedRole, "no")), "ProhibitedRole: no"},
		{with(condition.New(rolev1alpha1.Synced, false, infer.TooManyBindings, "many")), "TooManyBindings: many"},
		{with(condition.New(rolev1alpha1.Synced, false, infer.TooManyBindings, "more")), ""},
		{with(condition.New(rolev1alpha1.Synced, false, infer.Pending, "soon")), ""},
	} {
		write := buildRuleStatus(state.Rule{Value: rule}, step.status, childRoleList{})
		got := ""
		for _, note := range write.Events {
			got += note.Reason + ": " + note.Message
			if !note.Warning {
				t.Errorf("%s is no warning", note.Reason)
			}
		}
		if got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
		fields, ok := write.Fields.(rolev1alpha1.ImpliedRolesStatus)
		if !ok {
			t.Fatalf("got fields of type %T", write.Fields)
		}
		rule.Status = fields
	}
}
