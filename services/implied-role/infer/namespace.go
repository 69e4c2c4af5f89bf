package infer

import (
	"iter"
)

// NamespaceInput holds the rules and bindings of one namespace.
type NamespaceInput struct {
	Name  string
	Rules []Rule
	// Bindings holds explicit and generated bindings.
	Bindings []*Binding
}

// InferenceResult is the result of [EvaluateNamespace].
type InferenceResult struct {
	Rules *RuleSet
	// Desired holds the generated bindings that must exist, by name.
	Desired map[string]DesiredBinding
}

// EvaluateRuleSet returns the rule set of a namespace. Rules that would generate too many bindings are paused.
func EvaluateRuleSet(ns NamespaceInput, p Policy) *RuleSet {
	load, sources := map[Role]int{}, 0
	for _, b := range ns.Bindings {
		if b.IsSource() {
			load[b.Role]++
			sources++
		}
	}
	return NewRuleSet(ns.Name, ns.Rules, p).WithPausedRules(sources, func(r Role) int { return load[r] })
}

// EvaluateNamespace computes everything about a namespace. It defines the result of the service: the incremental computation after
// a change must agree with it.
func EvaluateNamespace(ns NamespaceInput, p Policy) InferenceResult {
	o := InferenceResult{Rules: EvaluateRuleSet(ns, p), Desired: map[string]DesiredBinding{}}
	for _, b := range ns.Bindings {
		for _, d := range o.Rules.DesiredBindings(b) {
			o.Desired[d.Name] = d
		}
	}
	return o
}

// PlannedActions lists the actions for the whole namespace, source by source.
func (o InferenceResult) PlannedActions(bindings []*Binding) []Action {
	var list []Action
	for plan := range o.Rules.PlanAllSources(bindings) {
		list = append(list, plan.Actions...)
	}
	return list
}

// PlanAllSources yields the plans of all bindings of a namespace, source by source. It holds one plan at a time, because all
// actions together may need too much memory.
func (rs *RuleSet) PlanAllSources(bindings []*Binding) iter.Seq[SourcePlan] {
	inputs, names := map[string]*PlanInput{}, []string{}
	byName, byRole := make(map[string]*Binding, len(bindings)), map[Role][]*Binding{}
	input := func(name string) *PlanInput {
		in, ok := inputs[name]
		if !ok {
			in = &PlanInput{
				Source: name, Occupant: func(name string) *Binding { return byName[name] }, To: func(r Role) []*Binding { return byRole[r] },
			}
			inputs[name] = in
			names = append(names, name)
		}
		return in
	}
	for _, b := range bindings {
		byName[b.Name] = b
		if !b.IsGenerated() {
			byRole[b.Role] = append(byRole[b.Role], b)
		}
		if b.Source != "" {
			input(b.Source).Generated = append(input(b.Source).Generated, b)
		} else {
			input(b.Name).Binding = b
		}
	}
	return func(yield func(SourcePlan) bool) {
		for _, name := range names {
			if !yield(rs.PlanSource(*inputs[name])) {
				return
			}
		}
	}
}
