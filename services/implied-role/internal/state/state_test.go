package state

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// stateFixture is a state whose objects the test sets.
type stateFixture struct {
	*State
	t       *testing.T
	view    *informer.Informer
	version int
}

func newStateFixture(t *testing.T) *stateFixture {
	t.Helper()
	v := informer.New(informer.Config{Cluster: "local", Log: slog.New(slog.DiscardHandler)})
	return &stateFixture{State: New(v, "local", infer.DefaultPolicy()), t: t, view: v}
}

// put sets an object. Nil deletes it.
func (f *stateFixture) put(kind kinds.Kind, namespace, name string, object any) {
	f.t.Helper()
	f.version++
	c := event.Change{
		Key: event.Key{Cluster: "local", GroupResource: kind.GroupResource, Namespace: namespace, Name: name}, UID: name,
		ResourceVersion: fmt.Sprint(f.version), Generation: int64(f.version), Deleted: object == nil,
	}
	if object != nil {
		var err error
		if c.Object, err = json.Marshal(object); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := f.view.Apply(f.t.Context(), c); err != nil {
		f.t.Fatal(err)
	}
}

// rule makes a rule named parent-child.
func (f *stateFixture) rule(namespace, parent, child string) {
	f.t.Helper()
	name := parent + "-" + strings.ReplaceAll(strings.ToLower(child), "/", "-")
	kind := rolev1alpha1.Role
	if rest, ok := strings.CutPrefix(child, "ClusterRole/"); ok {
		kind, child = rolev1alpha1.ClusterRole, rest
	}
	f.put(kinds.ImpliedRoles(), namespace, name, rolev1alpha1.ImpliedRoles{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       rolev1alpha1.ImpliedRolesSpec{InferenceRule: rolev1alpha1.InferenceRule{ParentRole: parent, ChildRole: child, ChildKind: kind}},
	})
}

// binding makes a binding of a subject to a role. With a source, it is a generated one.
func (f *stateFixture) binding(namespace, name, role, source string) {
	f.t.Helper()
	b := rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{Kind: rolev1alpha1.Role, Name: role}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "u"}},
	}
	if source != "" {
		b.Labels = map[string]string{infer.ManagedByLabel: infer.ManagedBy}
		b.OwnerReferences = []metav1.OwnerReference{{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding", Name: source}}
	}
	f.put(kinds.RoleBindings(), namespace, name, b)
}

func names(bindings []*infer.Binding) string {
	var all []string
	for _, b := range bindings {
		all = append(all, b.Name)
	}
	return strings.Join(all, " ")
}

func TestStateFindsBindingsByIndexes(t *testing.T) {
	f := newStateFixture(t)
	made := infer.GeneratedName("alice", infer.Role{Name: "viewer"})
	f.binding("team", "alice", "admin", "")
	f.binding("team", "bob", "viewer", "")
	f.binding("team", made, "viewer", "alice")
	f.binding("other", "alice", "viewer", "")
	if got := names(f.ExplicitBindingsTo("team", infer.Role{Name: "viewer"})); got != "bob" {
		t.Errorf("people bound to viewer: %s", got)
	}
	if got := f.CountGenerated(); got != 1 || f.CountGeneratedFrom("team", "alice") != 1 || f.CountGeneratedFrom("other", "alice") != 0 {
		t.Errorf("%d are generated", got)
	}
	in := f.PlanInput("team", "alice")
	if in.Binding == nil || in.Binding.Role.Name != "admin" || names(in.Generated) != made || in.Occupant(made) != in.Generated[0] || in.Occupant("nobody") != nil {
		t.Errorf("of alice there is %+v", in)
	}
	if in := f.PlanInput("team", made); in.Binding != nil {
		t.Error("what was generated is a source")
	}
	if got := names(f.GeneratedBindingsTo("team", infer.Role{Name: "viewer"})); got != made {
		t.Errorf("generated to viewer: %s", got)
	}
	f.binding("team", "ir-x-abcdefgh234567ab", "viewer", "")
	if orphans := f.OrphansAndClaimants("team", infer.NewRuleSet("team", nil, infer.DefaultPolicy())); !slices.Equal(orphans, []string{"ir-x-abcdefgh234567ab"}) {
		t.Errorf("orphans are %v", orphans)
	}
	if in := f.PlanInput("team", "ir-x-abcdefgh234567ab"); in.Binding == nil || len(in.Generated) != 0 {
		t.Errorf("of an orphan there is %+v", in)
	}
	f.put(kinds.RoleBindings(), "team", "ir-x-abcdefgh234567ab", nil)

	f.put(kinds.RoleBindings(), "team", "alice", nil)
	if in := f.PlanInput("team", "alice"); in.Binding != nil || names(in.Generated) != made {
		t.Errorf("of alice, deleted, there is %+v", in)
	}
	if sources := f.PossibleSourceNames("team"); !slices.Contains(sources, "alice") || !slices.Contains(sources, "bob") {
		t.Errorf("sources are %v", sources)
	}
	if gone := f.DeletedKeys("team"); len(gone) != 2 || gone[0] != f.BindingKey("team", "alice") || len(f.DeletedKeys("other")) != 0 {
		t.Errorf("deleted were %v", gone)
	}
	if f.CountBindings("team") == 0 || f.CountBindings("nowhere") != 0 {
		t.Error("team is empty, or nowhere is not")
	}
}

func TestRoleExistsFuncFindsRoles(t *testing.T) {
	f := newStateFixture(t)
	f.put(kinds.Roles(), "team", "viewer", metav1.PartialObjectMetadata{})
	f.put(kinds.ClusterRoles(), "", "admin", metav1.PartialObjectMetadata{})
	for _, c := range []struct {
		namespace string
		role      infer.Role
		want      bool
	}{
		{"team", infer.Role{Name: "viewer"}, true},
		{"other", infer.Role{Name: "viewer"}, false},
		{"team", infer.Role{Name: "viewer", Cluster: true}, false},
		{"team", infer.Role{Name: "admin", Cluster: true}, true},
		{"other", infer.Role{Name: "admin", Cluster: true}, true},
		{"team", infer.Role{Name: "admin"}, false},
	} {
		if got := f.RoleExistsFunc(c.namespace)(c.role); got != c.want {
			t.Errorf("%s exists in %s: %v", c.role, c.namespace, got)
		}
	}
}

func TestNamespacesWithChild(t *testing.T) {
	f := newStateFixture(t)
	f.rule("team", "admin", "viewer")
	f.rule("team", "admin", "ClusterRole/view")
	f.rule("other", "admin", "viewer")
	f.rule("third", "admin", "ClusterRole/view")
	for what, c := range map[string]struct {
		got  []string
		want string
	}{
		"with rules":                 {f.NamespacesWithRules(), "other team third"},
		"that want a Role":           {f.NamespacesWithChild("team", "viewer"), "team"},
		"that want a ClusterRole":    {f.NamespacesWithChild("", "view"), "team third"},
		"that want what nobody does": {f.NamespacesWithChild("team", "view"), ""},
	} {
		if got := strings.Join(c.got, " "); got != c.want {
			t.Errorf("namespaces %s: %s, want %s", what, got, c.want)
		}
	}
}

func TestRuleSetIsCachedUntilRulesChange(t *testing.T) {
	f := newStateFixture(t)
	f.rule("team", "a", "b")
	f.rule("team", "b", "a")
	f.rule("other", "a", "b")
	first, rules := f.RuleSetAndRules("team")
	f.binding("team", "alice", "a", "")
	if again := f.RuleSet("team"); len(rules) != 2 || !again.IsSameRuleSet(first) {
		t.Errorf("%d rules, and others after a binding came", len(rules))
	}
	f.RuleSet("other")
	if n := f.CountCycles(); n != 1 {
		t.Errorf("%d cycles", n)
	}
	f.put(kinds.ImpliedRoles(), "team", "b-a", nil)
	less, rules := f.RuleSetAndRules("team")
	if less.IsSameRuleSet(first) || len(rules) != 1 || f.CountCycles() != 0 {
		t.Errorf("without one of two there are %d rules and %d cycles", len(rules), f.CountCycles())
	}
	f.put(kinds.ImpliedRoles(), "team", "a-b", nil)
	if _, rules := f.RuleSetAndRules("team"); len(rules) != 0 || len(f.ruleSets) != 1 {
		t.Errorf("without rules there are %d, and %d sets are kept", len(rules), len(f.ruleSets))
	}
}

func TestWithPausedRulesCountsSources(t *testing.T) {
	f := newStateFixture(t)
	f.Policy.MaxGenerated = 2
	f.rule("team", "a", "b")
	f.binding("team", "B1", "a", "")
	f.binding("team", "B2", "a", "")
	f.binding("team", "generated", "a", "B1")
	f.binding("other", "B3", "a", "")
	free := f.RuleSet("team")
	if more := f.WithPausedRules("team", free, SourceCountChange{infer.Role{Name: "b"}: 1}); !more.IsSameRuleSet(free) {
		t.Error("one more source of another role pauses the rule")
	}
	if more := f.WithPausedRules("team", free, SourceCountChange{infer.Role{Name: "a"}: 1}); more.IsSameRuleSet(free) {
		t.Error("one source more than the limit pauses no rule")
	}
}

func TestRuleSetIsRebuiltForChangedSpecOfSameGeneration(t *testing.T) {
	f := newStateFixture(t)
	f.rule("ns", "a", "b")
	before, rules := f.RuleSetAndRules("ns")
	says := rules[0].Value.DeepCopy()
	says.Spec.InferenceRule.ParentRole = "x"
	object, err := json.Marshal(says)
	if err != nil {
		t.Fatal(err)
	}
	now := rules[0].Change
	now.ResourceVersion, now.Object = "99", object
	if err := f.view.Apply(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if after := f.RuleSet("ns"); after.IsSameRuleSet(before) {
		t.Error("it is still that of before")
	}
}

// TestRuleSetIsRevalidatedOnlyAfterSpecChange changes one of two rules step by step.
func TestRuleSetIsRevalidatedOnlyAfterSpecChange(t *testing.T) {
	f := newStateFixture(t)
	f.rule("ns", "a", "b")
	f.rule("ns", "b", "c")
	_, rules := f.RuleSetAndRules("ns")
	change, rule := rules[0].Change, rules[0].Value.DeepCopy()
	now := metav1.Now()
	for i, step := range []struct {
		what  string
		do    func()
		stale bool
	}{
		{"a status", func() { rule.Status.ObservedGeneration = 7 }, false},
		{"another child", func() { rule.Spec.InferenceRule.ChildRole = "x" }, true},
		{"a status again", func() { rule.Status.ObservedGeneration = 8 }, false},
		{"another generation", func() { change.Generation++ }, true},
		{"a deletion that a finalizer holds up", func() { rule.DeletionTimestamp, rule.Finalizers = &now, []string{"x/y"} }, true},
		{"the end of one that had gone", func() { change.Deleted = true }, false},
		{"another of its name", func() { change.Deleted, change.UID, rule.DeletionTimestamp = false, "other", nil }, true},
		{"its end", func() { change.Deleted = true }, true},
	} {
		step.do()
		object, err := json.Marshal(rule)
		if err != nil {
			t.Fatal(err)
		}
		change.Object, change.ResourceVersion = object, strconv.Itoa(100+i)
		if err := f.view.Apply(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		if got := f.ruleSets["ns"].stale; got != step.stale {
			t.Errorf("%s: stale is %v", step.what, got)
		}
		said := f.RuleSet("ns")
		if read, _ := f.RuleSetAndRules("ns"); !said.IsSameRuleSet(read) {
			t.Errorf("%s: the set is not what the rules say", step.what)
		}
	}
}
