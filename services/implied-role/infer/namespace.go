package infer

import (
	"iter"
)

// Namespace holds the rules and bindings of one namespace.
type Namespace struct {
	Name  string
	Rules []Rule
	// Bindings holds explicit and generated bindings.
	Bindings []*Binding
}

// Outcome is the result of [Infer].
type Outcome struct {
	Rules *RuleSet
	// Desired holds the generated bindings that must exist, by name.
	Desired map[string]Desired
}

// Evaluate returns the rule set of a namespace. Rules that would generate too many bindings are paused.
func Evaluate(ns Namespace, p Policy) *RuleSet {
	load, sources := map[Role]int{}, 0
	for _, b := range ns.Bindings {
		if b.IsSource() {
			load[b.Role]++
			sources++
		}
	}
	return NewRuleSet(ns.Name, ns.Rules, p).Limited(sources, func(r Role) int { return load[r] })
}

// Infer computes everything about a namespace. It defines the result of the service: the incremental computation after
// a change must agree with it.
func Infer(ns Namespace, p Policy) Outcome {
	o := Outcome{Rules: Evaluate(ns, p), Desired: map[string]Desired{}}
	for _, b := range ns.Bindings {
		for _, d := range o.Rules.Desired(b) {
			o.Desired[d.Name] = d
		}
	}
	return o
}

// Actions lists the actions for the whole namespace, source by source.
func (o Outcome) Actions(bindings []*Binding) []Action {
	var list []Action
	for plan := range o.Rules.Plans(bindings) {
		list = append(list, plan.Actions...)
	}
	return list
}

// Plans yields the plans of all bindings of a namespace, source by source. It holds one plan at a time, because all
// actions together may need too much memory.
func (rs *RuleSet) Plans(bindings []*Binding) iter.Seq[Plan] {
	inputs, names := map[string]*Input{}, []string{}
	byName, byRole := make(map[string]*Binding, len(bindings)), map[Role][]*Binding{}
	input := func(name string) *Input {
		in, ok := inputs[name]
		if !ok {
			in = &Input{
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
	return func(yield func(Plan) bool) {
		for _, name := range names {
			if !yield(rs.Plan(*inputs[name])) {
				return
			}
		}
	}
}
