package state

import (
	"slices"

	"github.com/entail-dev/entail/services/implied-role/infer"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
)

// cachedRuleSet is a rule set with the rules that it was made of.
type cachedRuleSet struct {
	ruleSet  *infer.RuleSet
	versions []ruleVersion
}

// ruleVersion tells whether a rule is still the same. What it says is part of that: the bus may have
// told something else of the same generation.
type ruleVersion struct {
	name, uid  string
	generation int64
	spec       rolev1alpha1.ImpliedRolesSpec
}

// RuleSet is what the rules of a namespace say together, and those rules, by name. One
// that is being deleted is gone.
func (s *State) RuleSet(namespace string) (*infer.RuleSet, []Rule) {
	rules := slices.DeleteFunc(s.Rules.By(byNamespace, namespace), func(r Rule) bool { return r.Value.DeletionTimestamp != nil })
	return s.Limited(namespace, s.cached(namespace, rules), Load{}), rules
}

// cached makes a rule set unless that has been done.
func (s *State) cached(namespace string, rules []Rule) *infer.RuleSet {
	versions := make([]ruleVersion, len(rules))
	for i, r := range rules {
		versions[i] = ruleVersion{r.Key.Name, r.UID, r.Generation, r.Value.Spec}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.ruleSets[namespace]
	if ok && slices.Equal(known.versions, versions) {
		return known.ruleSet
	}
	list := make([]infer.Rule, len(rules))
	for i, r := range rules {
		list[i] = RuleOf(r.Value)
	}
	known = cachedRuleSet{infer.NewRuleSet(namespace, list, s.Policy), versions}
	if s.ruleSets[namespace] = known; len(rules) == 0 {
		delete(s.ruleSets, namespace)
	}
	return known.ruleSet
}

// Load is how many sources there would be more of, or less, by their role.
type Load map[infer.Role]int

// Add counts a binding if it is a source.
func (l Load) Add(b *infer.Binding, n int) {
	if b != nil && b.IsSource() {
		l[b.Role] += n
	}
}

// Limited pauses rules that ask for too much of the bindings that there are, or would be.
func (s *State) Limited(namespace string, rules *infer.RuleSet, more Load) *infer.RuleSet {
	sources := s.Bindings.Count(bySource, namespace)
	for _, n := range more {
		sources += n
	}
	return rules.Limited(sources, func(r infer.Role) int { return s.Bindings.Count(bySource, in(namespace, r)) + more[r] })
}

// Cycles counts the sets of roles that all imply each other, in all namespaces.
func (s *State) Cycles() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, known := range s.ruleSets {
		n += len(known.ruleSet.Cycles())
	}
	return n
}
