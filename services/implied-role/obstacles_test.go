package impliedrole

import (
	"fmt"
	"slices"
	"testing"

	"github.com/entail-dev/entail/services/implied-role/infer"
)

func noRules() *infer.RuleSet { return infer.NewRuleSet("ns", nil, infer.DefaultPolicy()) }

func TestObstaclesOfManyBindingsAreReportedOnce(t *testing.T) {
	n, rules := newPassHistory(nil).ensureNamespaceHistory("ns"), noRules()
	n.beginPass(rules)
	for i := range 100 {
		pending := infer.BindingObstacle{Parent: infer.Role{Name: "a"}, Child: infer.Role{Name: "b"}, Reason: infer.Pending, Message: fmt.Sprintf("%03d", i)}
		forbidden := pending
		forbidden.Name, forbidden.Reason = fmt.Sprint(i), infer.Forbidden
		if _, changed := n.recordObstacles(fmt.Sprint("B", i), []infer.BindingObstacle{forbidden, pending}); !changed {
			t.Error("they are new")
		}
	}
	n.endPass(passResult{})
	got, known := n.collectObstacles(rules)
	if !known || len(got) != 2 || got[0].Reason != infer.Forbidden || got[0].Message != "000" || got[1].Message != "000" {
		t.Errorf("got %v", got)
	}
}

func TestStatusesAreWrittenAfterBindings(t *testing.T) {
	n, rules := newPassHistory(nil).ensureNamespaceHistory("ns"), noRules()
	told := func() bool { _, known := n.collectObstacles(rules); return known }
	if told() {
		t.Error("before the first pass: got known obstacles")
	}
	n.beginPass(rules)
	if told() {
		t.Error("during a pass: got known obstacles")
	}
	if n.endPass(passResult{unfinished: true}) || told() {
		t.Error("after an unfinished pass: got known obstacles")
	}
	n.beginPass(rules)
	if !n.endPass(passResult{}) {
		t.Error("the end of a pass does not wake the waiting statuses")
	}
	if !told() || n.endPass(passResult{}) {
		t.Error("after a pass: got unknown obstacles, or a second wake-up")
	}
	if rules = noRules(); told() {
		t.Error("rules without a pass: got known obstacles")
	}
	n.beginPass(rules)
	if !n.endPass(passResult{finished: true}) || n.finished.IsZero() {
		t.Error("the end of a pass for other rules does not wake the waiting statuses")
	}
}

func TestPassHistoryRemembersSourceWaitingForName(t *testing.T) {
	n := newPassHistory(nil).ensureNamespaceHistory("ns")
	taken := func(names ...string) []infer.BindingObstacle {
		var list []infer.BindingObstacle
		for _, name := range names {
			list = append(list, infer.BindingObstacle{Name: name, Reason: infer.NameConflict})
		}
		return list
	}
	for _, step := range []struct {
		obstacles []infer.BindingObstacle
		news      []string
		changed   bool
		waiting   string
	}{
		{taken("x", "y"), []string{"x", "y"}, true, "B"},
		{taken("x", "y"), nil, false, "B"},
		{taken("x", "z"), []string{"z"}, true, ""},
		{nil, nil, true, ""},
		{nil, nil, false, ""},
	} {
		news, changed := n.recordObstacles("B", step.obstacles)
		if !slices.Equal(news, step.news) || changed != step.changed {
			t.Errorf("%v: got news %v, changed %v", step.obstacles, news, changed)
		}
		if got := n.sourcesNeedingBindings(map[string]struct{}{"y": {}}); len(got) == 0 != (step.waiting == "") {
			t.Errorf("%v: for y waits %v", step.obstacles, got)
		}
	}
}

func TestPassHistoryReportsFalselyGeneratedBindingOnce(t *testing.T) {
	n := newPassHistory(nil).ensureNamespaceHistory("ns")
	for i, c := range []struct {
		uid  string
		news bool
	}{{"1", true}, {"1", false}, {"2", true}, {"", false}, {"2", true}} {
		if got := n.recordFalselyGeneratedBinding("B", c.uid); got != c.news {
			t.Errorf("%d: %v", i, got)
		}
	}
}
