package state

import (
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/implied-role/infer"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// cachedRuleSet is a rule set with the rules that it was made of.
type cachedRuleSet struct {
	ruleSet  *infer.RuleSet
	versions []ruleVersion // by name
	// stale means that a rule says something else by now.
	stale bool
}

// ruleVersion tells whether a rule is still the same. What it says is part of that: the bus may have
// told something else of the same generation.
type ruleVersion struct {
	name, uid  string
	generation int64
	spec       rolev1alpha1.ImpliedRolesSpec
}

func versionOf(r Rule) ruleVersion { return ruleVersion{r.Key.Name, r.UID, r.Generation, r.Value.Spec} }

func (v ruleVersion) compareName(name string) int { return strings.Compare(v.name, name) }

// changed is told of every change of the view. A status says nothing new to rule sets: it is
// written again and again, for each of many rules.
func (s *State) changed(k event.Key) {
	if k.GroupResource != kinds.ImpliedRoles().GroupResource {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.ruleSets[k.Namespace]
	if known == nil {
		return
	}
	i, has := slices.BinarySearchFunc(known.versions, k.Name, ruleVersion.compareName)
	if is, live := s.Rules.Get(k); live && is.Value.DeletionTimestamp == nil {
		known.stale = known.stale || !has || known.versions[i] != versionOf(is)
	} else {
		known.stale = known.stale || has
	}
}

// reloaded is told when the view was loaded anew.
func (s *State) reloaded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.ruleSets {
		known.stale = true
	}
}

// RuleSet is what the rules of a namespace say together.
func (s *State) RuleSet(namespace string) *infer.RuleSet {
	s.mu.Lock()
	known := s.ruleSets[namespace]
	if known == nil || known.stale {
		known, _ = s.evaluate(namespace)
	}
	s.mu.Unlock()
	return s.Limited(namespace, known.ruleSet, Load{})
}

// RuleSetAndRules is [State.RuleSet] with those rules, by name. One that is being deleted is gone.
func (s *State) RuleSetAndRules(namespace string) (*infer.RuleSet, []Rule) {
	s.mu.Lock()
	known, rules := s.evaluate(namespace)
	s.mu.Unlock()
	return s.Limited(namespace, known.ruleSet, Load{}), rules
}

// evaluate makes a rule set unless that has been done; the caller holds the lock.
func (s *State) evaluate(namespace string) (*cachedRuleSet, []Rule) {
	rules := slices.DeleteFunc(s.Rules.By(byNamespace, namespace), func(r Rule) bool { return r.Value.DeletionTimestamp != nil })
	versions := make([]ruleVersion, len(rules))
	for i, r := range rules {
		versions[i] = versionOf(r)
	}
	known := s.ruleSets[namespace]
	if known == nil || !slices.Equal(known.versions, versions) {
		list := make([]infer.Rule, len(rules))
		for i, r := range rules {
			list[i] = RuleOf(r.Value)
		}
		known = &cachedRuleSet{ruleSet: infer.NewRuleSet(namespace, list, s.Policy), versions: versions}
	}
	known.stale = false
	if s.ruleSets[namespace] = known; len(rules) == 0 {
		delete(s.ruleSets, namespace)
	}
	return known, rules
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
