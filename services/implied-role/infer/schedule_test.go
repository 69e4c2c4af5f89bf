package infer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"
)

func TestScheduleActionsAddsGrantBeforeRemoval(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"revocations come first":             {"a>c b>d B1=a{x}", "-B1 B2=b{y}", "delete B1:c | create B2:d |"},
		"but not of what is given elsewhere": {"a>c b>c B1=a{x} B3=a{z}", "-B1 -B3 B2=b{x}", "delete B3:c | create B2:c | delete B1:c"},
		"a subject is dropped":               {"a>c B1=a{x,y}", "B1=a{x}", "update B1:c | |"},
		"a subject moves":                    {"a>c B1=a{x,y} B2=a{z}", "B1=a{x} B2=a{y,z}", "| update B2:c | update B1:c"},
		"two subjects change places":         {"a>c B1=a{x} B2=a{y}", "B1=a{y} B2=a{x}", "| update B1:c update B2:c | update B1:c update B2:c"},
		"another subject":                    {"a>c B1=a{x}", "B1=a{y}", "| update B1:c |"},
		"small sources do not wait":          {"", "a>c1 a>c2 b>d A=a{x} B=b{x}", "| create B:d create A:c1 create A:c2 |"},
	} {
		w := newSimulatedNamespace(t)
		w.do(c.before)
		w.settle()
		w.do(c.after)
		first, then, last := ScheduleActions(w.infer().PlannedActions(w.all()))
		var got []string
		for _, actions := range [][]Action{first, then, last} {
			for _, a := range actions {
				got = append(got, fmt.Sprintf("%s %s:%s", a.Verb, a.Source, a.Child))
			}
			got = append(got, "|")
		}
		text := strings.Join(got[:len(got)-1], " ")
		if text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// grants returns the grants of all existing bindings.
func (w *simulatedNamespace) grants() map[subjectRole]struct{} {
	all := map[subjectRole]struct{}{}
	for _, b := range w.all() {
		for _, s := range b.Subjects {
			all[subjectRole{b.Role, s}] = struct{}{}
		}
	}
	return all
}

// wants returns the grants of explicit bindings and of the bindings that follow from them.
func (w *simulatedNamespace) wants() map[subjectRole]struct{} {
	all := map[subjectRole]struct{}{}
	for _, b := range w.all() {
		if b.IsGenerated() {
			continue
		}
		for _, s := range b.Subjects {
			all[subjectRole{b.Role, s}] = struct{}{}
		}
	}
	for _, wanted := range w.infer().Desired {
		for _, s := range wanted.Source.Subjects {
			all[subjectRole{wanted.Child, s}] = struct{}{}
		}
	}
	return all
}

// random makes one random change.
func (w *simulatedNamespace) random(t *rapid.T) {
	letter := rapid.SampledFrom([]string{"a", "b", "c", "d", "ClusterRole/a", "e"})
	names := rapid.SampledFrom([]string{"B1", "B2", "B3", "B4"})
	rule := fmt.Sprintf("r%d:%s>%s", rapid.IntRange(0, 7).Draw(t, "rule"), letter.Draw(t, "parent"), letter.Draw(t, "child"))
	who := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y", "z", "group:g"}), 0, 3, rapid.ID).Draw(t, "subjects")
	binding := fmt.Sprintf("%s=%s{%s}", names.Draw(t, "binding"), letter.Draw(t, "role"), strings.Join(who, ","))
	op := rapid.SampledFrom([]string{rule, rule, "-" + rule, binding, binding, "-" + names.Draw(t, "gone")}).Draw(t, "op")
	w.do(op)
}

// TestScheduleActionsNeverInterruptsGrant makes several changes at a time, and executes the plan step by step. A
// grant that exists, and that is required before and after each change, must exist after every step.
func TestScheduleActionsNeverInterruptsGrant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSimulatedNamespace(t)
		for range rapid.IntRange(6, 20).Draw(t, "rounds") {
			always := w.wants()
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				w.random(t)
				wants := w.wants()
				maps.DeleteFunc(always, func(g subjectRole, _ struct{}) bool { _, still := wants[g]; return !still })
			}
			has := w.grants()
			maps.DeleteFunc(always, func(g subjectRole, _ struct{}) bool { _, yet := has[g]; return !yet })
			first, then, last := ScheduleActions(w.infer().PlannedActions(w.all()))
			verify := func(a Action) {
				has := w.grants()
				for g := range always {
					if _, ok := has[g]; !ok {
						t.Fatalf("after %s of %s, %s lacks %s", a.Verb, a.Name, g.subject.Name, g.role)
					}
				}
			}
			for _, actions := range [][]Action{first, then, last} {
				// The actions of one part may be executed in any order.
				for _, i := range rapid.Permutation(numbers(len(actions))).Draw(t, "order") {
					w.apply(actions[i])
					verify(actions[i])
				}
			}
			w.settle()
			if !maps.Equal(w.grants(), w.wants()) {
				t.Fatalf("has %v, want %v", w.grants(), w.wants())
			}
		}
	})
}

func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// TestPlanOfAffectedSourcesEqualsFullPlan plans everything, and also only the changed bindings and those whose role
// implies other roles. Both plans must be the same.
func TestPlanOfAffectedSourcesEqualsFullPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSimulatedNamespace(t)
		w.policy.MaxGenerated = rapid.SampledFrom([]int{3, 8, 10_000}).Draw(t, "limit")
		before := w.settle()
		for range rapid.IntRange(10, 30).Draw(t, "rounds") {
			was := maps.Clone(w.bindings)
			w.random(t)
			now := w.infer()
			changed := now.Rules.ChangedRoles(before.Rules)
			dirty := func(a Action) bool {
				b := w.bindings[a.Source]
				return b != was[a.Source] || b != nil && slices.Contains(changed, read(t, b).Role)
			}
			for _, a := range now.PlannedActions(w.all()) {
				if !dirty(a) {
					t.Fatalf("%s of %s would be missed", a.Verb, a.Name)
				}
			}
			before = w.settle()
		}
	})
}

func TestSubjectsAreComparedAsSets(t *testing.T) {
	x, y := subject("x"), subject("y")
	for name, c := range map[string]struct{ all, some, want []rbacv1.Subject }{
		"same":      {[]rbacv1.Subject{x, y}, []rbacv1.Subject{x, y}, nil},
		"reordered": {[]rbacv1.Subject{x, y}, []rbacv1.Subject{y, x}, nil},
		"one":       {[]rbacv1.Subject{x, y}, []rbacv1.Subject{y}, []rbacv1.Subject{x}},
		"none":      {[]rbacv1.Subject{x}, nil, []rbacv1.Subject{x}},
	} {
		if got := subtractSubjects(c.all, c.some); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
