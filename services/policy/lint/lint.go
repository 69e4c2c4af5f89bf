package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/words"
)

const (
	// nearAction is the length above which the name of an action comes near OpenFGA's limit: 45 characters with the
	// suffix of role bindings.
	nearAction = 40
	// nearTypes is the number of types above which a model comes near OpenFGA's default limit of 100.
	nearTypes = 80
	// minAlikeBindings is the number of bindings with the same conditions from which on a union is better.
	minAlikeBindings = 3
	// maxShown bounds the names that a finding lists.
	maxShown = 5
)

// Policy returns the warnings about a policy.
func Policy(p *policy.Policy) policy.Diagnostics {
	l := linter{policy: p}
	for _, u := range p.Unions {
		if len(u.Members) == 1 {
			l.found.Add(u.Source.PlaceAt(u.At), policy.CodeOneMemberUnion, fmt.Sprintf("union %q has one member", u.Name),
				"refer to "+u.Members[0].Name+" itself, or add members")
		}
	}
	l.warnNearLimits()
	l.warnRecursion()
	l.warnRepeatedBindings()
	l.warnMissingVerbs()
	return l.found.Diagnostics()
}

type linter struct {
	found  policy.DiagnosticCollector
	policy *policy.Policy
}

func (l *linter) warnNearLimits() {
	for _, a := range l.policy.Actions {
		if len(a.Name) > nearAction {
			l.found.Add(a.Source.PlaceAt(a.At), policy.CodeNearLimit, fmt.Sprintf("action %.64q has %d characters; OpenFGA takes 45 where it has role bindings",
				a.Name, len(a.Name)), "shorten the name")
		}
	}
	if n := len(l.policy.Types); n > nearTypes {
		l.found.Add(policy.Place{}, policy.CodeNearLimit, fmt.Sprintf("the policy has %d types; OpenFGA accepts 100 by default", n),
			"raise the limit of OpenFGA in time")
	}
}

// warnRepeatedBindings reports bindings that differ only in their type.
func (l *linter) warnRepeatedBindings() {
	groups := map[string][]*policy.Binding{}
	for _, t := range l.policy.Types {
		for _, b := range t.Bindings {
			if b.On == t.Name {
				groups[conditionsKey(b)] = append(groups[conditionsKey(b)], b)
			}
		}
	}
	for _, group := range groups {
		if len(group) < minAlikeBindings {
			continue
		}
		names := make([]string, 0, len(group))
		for _, b := range group {
			names = append(names, b.On)
		}
		l.found.Add(group[0].Source.PlaceAt(group[0].At), policy.CodeRepeatedBinding,
			fmt.Sprintf("action %q is bound with the same conditions to %s", group[0].Action, words.ListSome(names, maxShown)),
			"bind it once, to a union of them")
	}
}

// conditionsKey returns a key that is equal for bindings of one action with the same conditions.
func conditionsKey(b *policy.Binding) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %t", b.Action, b.RoleBinding)
	for _, s := range b.Steps {
		text.WriteString(" " + s.Relation + "->" + s.Action)
	}
	return text.String()
}

// warnMissingVerbs reports nouns without a verb that most other nouns have, among actions with names noun_verb.
func (l *linter) warnMissingVerbs() {
	nouns, verbs := map[string][]*policy.Action{}, map[string]int{}
	has := map[string]bool{}
	for _, a := range l.policy.Actions {
		if i := strings.LastIndexByte(a.Name, '_'); i > 0 && i < len(a.Name)-1 {
			nouns[a.Name[:i]] = append(nouns[a.Name[:i]], a)
			verbs[a.Name[i+1:]]++
			has[a.Name] = true
		}
	}
	for noun, actions := range nouns {
		var lacks []string
		for verb, count := range verbs {
			if count >= minAlikeBindings && count*3 >= len(nouns)*2 && !has[noun+"_"+verb] {
				lacks = append(lacks, noun+"_"+verb)
			}
		}
		if len(lacks) == 0 {
			continue
		}
		slices.Sort(lacks)
		first := slices.MinFunc(actions, func(a, b *policy.Action) int { return cmp.Compare(a.Name, b.Name) })
		l.found.Add(first.Source.PlaceAt(first.At), policy.CodeVerbs,
			fmt.Sprintf("there is %q, but no %s as most others have", first.Name, words.ListSome(lacks, maxShown)), "declare it, if it was forgotten")
	}
}
