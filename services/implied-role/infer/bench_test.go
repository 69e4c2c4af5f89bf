package infer

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
)

// randomHierarchy returns random rules, each from a role to a later one.
func randomHierarchy(roles, rules int) []Rule {
	r := rand.New(rand.NewPCG(1, 2))
	list := make([]Rule, 0, rules)
	for len(list) < rules {
		parent, child := r.IntN(roles), r.IntN(roles)
		if parent < child {
			list = append(list, Rule{Name: fmt.Sprintf("rule-%05d", len(list)), Parent: numbered(parent), Child: numbered(child)})
		}
	}
	return list
}

func numbered(i int) Role { return Role{Name: fmt.Sprintf("role-%04d", i)} }

// zipfBindings returns bindings in a Zipf distribution: few roles have many of them.
func zipfBindings(bindings, roles int) []*Binding {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(3, 4)), 1.1, 1, uint64(roles-1))
	list := make([]*Binding, bindings)
	for i := range list {
		list[i] = &Binding{
			Name: fmt.Sprintf("binding-%06d", i), Namespace: "ns", UID: types.UID(fmt.Sprint(i)), Role: numbered(int(zipf.Uint64())),
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: fmt.Sprintf("user-%d", i)}},
		}
	}
	return list
}

func unlimited() Policy {
	p := DefaultPolicy()
	p.MaxGenerated = 1 << 40
	return p
}

// BenchmarkCold measures a cold start: all rules and bindings of a namespace are planned.
func BenchmarkCold(b *testing.B) {
	ns := NamespaceInput{Name: "ns", Rules: randomHierarchy(1000, 1000), Bindings: zipfBindings(100_000, 1000)}
	desired, actions := 0, 0
	for b.Loop() {
		o := EvaluateNamespace(ns, unlimited())
		desired, actions = len(o.Desired), len(o.PlannedActions(ns.Bindings))
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(desired), "desired")
	b.ReportMetric(float64(actions), "actions")
	b.ReportMetric(float64(memory.Sys)/(1<<20), "MiB-of-system")
}

// BenchmarkConverged plans everything when nothing is to be done.
func BenchmarkConverged(b *testing.B) {
	ns := NamespaceInput{Name: "ns", Rules: randomHierarchy(1000, 1000), Bindings: zipfBindings(100_000, 1000)}
	o := EvaluateNamespace(ns, unlimited())
	all := ns.Bindings
	for _, w := range o.Desired {
		all = append(all, w.ToBinding())
	}
	for b.Loop() {
		if actions := EvaluateNamespace(NamespaceInput{Name: "ns", Rules: ns.Rules, Bindings: all}, unlimited()).PlannedActions(all); len(actions) > 0 {
			b.Fatal(actions[0])
		}
	}
}

// BenchmarkRuleEvent measures a new rule, from its arrival to the bindings that it concerns.
func BenchmarkRuleEvent(b *testing.B) {
	for _, size := range []struct{ roles, rules int }{{1000, 1000}, {5000, 20_000}} {
		b.Run(fmt.Sprintf("%d roles, %d rules, 100000 bindings", size.roles, size.rules), func(b *testing.B) {
			rules := randomHierarchy(size.roles, size.rules)
			byRole := map[Role][]*Binding{}
			for _, binding := range zipfBindings(100_000, size.roles) {
				byRole[binding.Role] = append(byRole[binding.Role], binding)
			}
			load := func(r Role) int { return len(byRole[r]) }
			before := NewRuleSet("ns", rules[1:], unlimited()).WithPausedRules(100_000, load)
			dirty := 0
			for b.Loop() {
				dirty = 0
				after := NewRuleSet("ns", rules, unlimited()).WithPausedRules(100_000, load)
				for _, r := range after.ChangedRoles(before) {
					dirty += len(byRole[r])
				}
			}
			b.ReportMetric(float64(dirty), "dirty")
		})
	}
}

// BenchmarkRuleSet evaluates rules and computes their closure.
func BenchmarkRuleSet(b *testing.B) {
	ring := make([]Rule, 1000)
	for i := range ring {
		ring[i] = Rule{Name: fmt.Sprintf("%04d", i), Parent: numbered(i), Child: numbered((i + 1) % len(ring))}
	}
	for name, rules := range map[string][]Rule{"1000 roles, 1000 rules": randomHierarchy(1000, 1000), "5000 roles, 20000 rules": randomHierarchy(5000, 20_000), "cycle of 1000": ring} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				NewRuleSet("ns", rules, unlimited())
			}
		})
	}
}
