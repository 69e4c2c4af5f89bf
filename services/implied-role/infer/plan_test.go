package infer

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"
)

// TestPlanCoversEveryBindingInRandomWorlds damages generated bindings in random worlds. A binding that no
// plan mentions must be correct, and no plan may both change a binding and leave it out.
func TestPlanCoversEveryBindingInRandomWorlds(t *testing.T) {
	harms := []func(*rbacv1.RoleBinding){
		deleting,
		func(b *rbacv1.RoleBinding) { b.Finalizers = []string{"example.com/held"} },
		func(b *rbacv1.RoleBinding) { b.Labels, b.Annotations, b.OwnerReferences = nil, nil, nil },
		func(b *rbacv1.RoleBinding) { b.Subjects = append(b.Subjects, subject("mallory")) },
		func(b *rbacv1.RoleBinding) { b.Subjects = nil },
		func(b *rbacv1.RoleBinding) { b.Labels = map[string]string{IndependentLabel: independent} },
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newSimulatedNamespace(t)
		w.policy.MaxGenerated = rapid.SampledFrom([]int{3, 10_000}).Draw(t, "limit")
		for range rapid.IntRange(5, 20).Draw(t, "before") {
			w.random(t)
		}
		w.settle()
		for _, b := range w.all() {
			if i := rapid.IntRange(0, 2*len(harms)).Draw(t, "harm"); b.IsGenerated() && i < len(harms) {
				harms[i](w.bindings[b.Name])
			}
		}
		for range rapid.IntRange(0, 5).Draw(t, "after") {
			w.random(t)
		}
		outcome, is := w.infer(), map[string]*Binding{}
		spoken := map[string]BindingDifference{}
		for _, d := range outcome.differences(w.all()) {
			if before, twice := spoken[d.Name]; twice || (d.Verb == 0) == (d.Obstacle == "") {
				t.Fatalf("%s: %+v, and %+v", d.Name, before, d)
			}
			spoken[d.Name] = d
		}
		for _, b := range w.all() {
			is[b.Name] = b
			desired, wanted := outcome.Desired[b.Name]
			inStep := wanted && desired.matchesBinding(b) && !b.Deleting || !wanted && len(b.Subjects) == 0
			if _, ok := spoken[b.Name]; b.IsGenerated() && !ok && !inStep {
				t.Fatalf("the plan does not mention %s, which grants %s to %v", b.Name, b.Role, b.Subjects)
			}
		}
		for name := range outcome.Desired {
			if _, ok := spoken[name]; is[name] == nil && !ok {
				t.Fatalf("%s is missing, and the plan does not mention it: %v", name, spoken)
			}
		}
	})
}
