package infer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/condition"
)

func planEverything(Role) bool { return true }

func (w *simulatedNamespace) status(rule string, f StatusInput) RuleStatus {
	w.t.Helper()
	if f.Exists == nil {
		f.Exists = planEverything
	}
	o := w.infer()
	i := slices.IndexFunc(o.Rules.Rules(), func(j EvaluatedRule) bool { return j.Name == rule })
	if i < 0 {
		w.t.Fatalf("no rule %s", rule)
	}
	return o.Rules.StatusWithChildren(o.Rules.Rules()[i], f)
}

// rows returns the implied roles of each parent as text.
func rows(b *RuleSet) string {
	var list []string
	for r := range b.ParentRoles() {
		list = append(list, r.String()+": "+names(b.ImpliedRoles(r)))
	}
	return strings.Join(list, "; ")
}

func TestWorkedExampleInferencesAndStatuses(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do(seed)
	const all = "admin: developer noob pro reviewer writer; developer: noob pro writer; writer: noob pro"
	if got := rows(w.infer().Rules); got != all {
		t.Errorf("with all rules %q", got)
	}
	w.do("-developer>writer")
	if got := rows(w.infer().Rules); got != "admin: developer reviewer; writer: noob pro" {
		t.Errorf("without developer>writer %q", got)
	}
	for rule, want := range map[string]string{
		"admin>developer": "developer reviewer", "admin>reviewer": "developer reviewer", "writer>pro": "noob pro", "writer>noob": "noob pro",
	} {
		if s := w.status(rule, StatusInput{}); names(s.Children) != want || s.Parent.Name+">" != rule[:len(s.Parent.Name)+1] || !s.Synced.IsTrue() {
			t.Errorf("status of %s: %+v", rule, s)
		}
	}
}

func TestComputeStatusReadyRequiresAcceptedAndSynced(t *testing.T) {
	accepted, refused := condition.New("Accepted", true, Accepted, "more"), condition.New("Accepted", false, "ProhibitedRole", "no")
	synced, pending := condition.New("Synced", true, Synced, ""), condition.New("Synced", false, Pending, "wait")
	for want, s := range map[string]RuleStatus{
		"Ready True Synced ": {Accepted: accepted, Synced: synced}, "Ready False Pending wait": {Accepted: accepted, Synced: pending},
		"Ready False ProhibitedRole no": {Accepted: refused, Synced: pending},
	} {
		all := s.Conditions()
		c := all[len(all)-1]
		if got := fmt.Sprint(c.Type, " ", c.Status, " ", c.Reason, " ", c.Message); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCloudHierarchyImpliesRoles(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do(cloud)
	b := w.infer().Rules
	for r, want := range map[string]int{"all_admin": 7, "storage_admin": 4, "network_admin": 2, "image_admin": 2, "object_admin": 2, "volume_admin": 2, "editor": 1, "reader": 0} {
		if got := len(b.ImpliedRoles(role(r))); got != want {
			t.Errorf("%s implies %d roles, want %d", r, got, want)
		}
	}
}

func TestComputeStatusReportsRefusalReason(t *testing.T) {
	for name, c := range map[string]struct{ parent, child, reason string }{
		"it holds":             {"a", "b", Accepted},
		"no child":             {"a", "", Incomplete},
		"no parent":            {"", "b", Incomplete},
		"no role name":         {"a", "b/c", Incomplete},
		"too long":             {"a", strings.Repeat("x", 254), Incomplete},
		"itself":               {"a", "a", SelfImplication},
		"the kinds differ":     {"a", "ClusterRole/a", Accepted},
		"cluster-admin":        {"a", "ClusterRole/cluster-admin", ProhibitedRole},
		"a Role of that name":  {"a", "cluster-admin", Accepted},
		"the system's":         {"a", "ClusterRole/system:node", ProhibitedRole},
		"the system's, a Role": {"a", "system:node", ProhibitedRole},
	} {
		w := newSimulatedNamespace(t)
		parent, flaw := ParseRole(role(c.parent).Kind(), role(c.parent).Name)
		child, other := ParseRole(role(c.child).Kind(), role(c.child).Name)
		w.rules["rule"] = Rule{Name: "rule", Parent: parent, Child: child, Flaw: cmp.Or(flaw, other)}
		s := w.status("rule", StatusInput{})
		if s.Accepted.Reason != c.reason || s.Accepted.IsTrue() != (c.reason == Accepted) || s.Synced.IsTrue() != s.Accepted.IsTrue() || !s.Acyclic.IsTrue() {
			t.Errorf("%s: %+v", name, s)
		}
		if !s.Accepted.IsTrue() && (s.Accepted.Message == "" || len(s.Children) > 0 || s.Synced.Reason != NotAccepted) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestParseRoleRefusesUnknownKind(t *testing.T) {
	if _, err := ParseRole("User", "a"); err == nil {
		t.Error("a User is taken for a role")
	}
	if r, err := ParseRole("", "a"); err != nil || r.Cluster || r.Kind() != KindRole {
		t.Errorf("without a kind it is %+v, %v", r, err)
	}
}

func TestEvaluateRulesKeepsOldestAboveLimit(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.policy.MaxRules = 2
	for i, name := range []string{"z", "a", "m"} {
		w.rules[name] = Rule{Name: name, Parent: role("p"), Child: role("c" + name), Created: time.Unix(int64(i), 0)}
	}
	w.rules["self"] = Rule{Name: "self", Parent: role("p"), Child: role("p")}
	for rule, reason := range map[string]string{"z": Accepted, "a": Accepted, "m": TooManyRules, "self": SelfImplication} {
		if s := w.status(rule, StatusInput{}); s.Accepted.Reason != reason {
			t.Errorf("%s: %+v", rule, s.Accepted)
		}
	}
}

func TestComputeStatusReportsCycle(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("a>b b>c c>a c>d x>a")
	for rule, want := range map[string]string{"a>b": "a -> b -> c -> a", "b>c": "b -> c -> a -> b", "c>a": "c -> a -> b -> c", "c>d": "", "x>a": ""} {
		s := w.status(rule, StatusInput{})
		if s.Acyclic.IsTrue() != (want == "") || !strings.Contains(s.Acyclic.Message, want) || !s.Accepted.IsTrue() || !s.Synced.IsTrue() {
			t.Errorf("%s: %+v", rule, s)
		}
	}
	w.do("-c>a")
	for rule := range w.rules {
		if s := w.status(rule, StatusInput{}); !s.Acyclic.IsTrue() {
			t.Errorf("after the cycle is broken %s says %+v", rule, s.Acyclic)
		}
	}
}

func TestComputeStatusShortensLongCycle(t *testing.T) {
	w := newSimulatedNamespace(t)
	for i := range 1000 {
		w.do(fmt.Sprintf("r%d>r%d", i, (i+1)%1000))
	}
	s := w.status("r0>r1", StatusInput{})
	if s.Acyclic.IsTrue() || len(s.Acyclic.Message) > 400 || len(s.Children) != 999 {
		t.Errorf("%+v with %d children", s.Acyclic, len(s.Children))
	}
}

func TestComputeStatusReportsMissingRole(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("a>b B=a{x}")
	s := w.status("a>b", StatusInput{Exists: func(r Role) bool { return r != role("b") }})
	if s.ChildRoleFound.IsTrue() || s.ChildRoleFound.Reason != RoleMissing || !s.Synced.IsTrue() {
		t.Errorf("%+v", s)
	}
	if w.settle(); w.generated(false) != "B:b" {
		t.Errorf("generated %q", w.generated(false))
	}
}

func TestComputeStatusReportsObstacleOnEveryRule(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("a>b b>c b>d x>c")
	f := StatusInput{Obstacles: []BindingObstacle{
		{Parent: role("a"), Child: role("c"), Reason: Pending, Message: "wait"},
		{Parent: role("a"), Child: role("c"), Reason: Forbidden, Message: "no"},
		{Parent: role("b"), Child: role("d"), Reason: NameConflict, Message: "taken"},
	}}
	for rule, want := range map[string]string{"a>b": Forbidden, "b>c": Forbidden, "b>d": NameConflict, "x>c": Synced} {
		if s := w.status(rule, f); s.Synced.Reason != want || s.Synced.IsTrue() != (want == Synced) {
			t.Errorf("%s: %+v, want %s", rule, s.Synced, want)
		}
	}
}

func TestComputeStatusReportsFailedRevocation(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("a>b b>c x>d")
	f := StatusInput{Obstacles: []BindingObstacle{{Child: role("c"), Reason: Forbidden, Message: "no"}}}
	for rule, want := range map[string]string{"a>b": Forbidden, "b>c": Forbidden, "x>d": Synced} {
		if s := w.status(rule, f); s.Synced.Reason != want {
			t.Errorf("%s: %+v, want %s", rule, s.Synced, want)
		}
	}
}

func TestWithPausedRulesPausesExcessiveRule(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.policy.MaxGenerated = 4
	w.do("a>b b>c B1=a{x} B2=a{y}")
	w.settle()
	was := w.generated(false)
	w.do("B3=a{z}") // Now a>b would generate 6 bindings.
	w.settle()
	if w.generated(false) != was {
		t.Errorf("generated %q, before %q: what is there stays, and nothing is added", w.generated(false), was)
	}
	if s := w.status("a>b", StatusInput{}); s.Synced.Reason != TooManyBindings || !s.Accepted.IsTrue() || names(s.Children) != "b c" {
		t.Errorf("%+v", s)
	}
	if s := w.status("b>c", StatusInput{}); !s.Synced.IsTrue() {
		t.Errorf("of the other rule: %+v", s)
	}
	w.do("B4=b{u}")
	if w.settle(); w.generated(false) != was+" B4:c" {
		t.Errorf("a rule that is not paused brought about %q", w.generated(false))
	}
	w.do("-B1 -B4")
	if w.settle(); w.generated(false) != "B2:b B2:c B3:b B3:c" {
		t.Errorf("when it is less again, generated %q", w.generated(false))
	}
}

func TestIsProhibitedMatchesNamePatterns(t *testing.T) {
	p := Policy{Prohibited: []string{"Role/secret", "ops-*", "exact"}}
	var got []string
	for _, text := range []string{"secret", "ClusterRole/secret", "ops-a", "ClusterRole/ops-", "ops", "exact", "exactly"} {
		if p.isProhibited(role(text)) {
			got = append(got, text)
		}
	}
	if joined := strings.Join(got, " "); joined != "secret ops-a ClusterRole/ops- exact" {
		t.Errorf("prohibited: %s", joined)
	}
}

func TestRulesBetweenFindsRulesByContent(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("two:a>b one:a>b a>c a>a")
	b := w.infer().Rules
	if got := strings.Join(b.RulesBetween(role("a"), role("b")), " "); got != "one two" {
		t.Errorf("between: %q", got)
	}
	if got := strings.Join(b.RulesWithParent(role("a")), " "); got != "a>c one two" {
		t.Errorf("with: %q", got)
	}
	if got := slices.Sorted(maps.Keys(w.rules)); len(got) != 4 {
		t.Errorf("rules %v", got)
	}
}
