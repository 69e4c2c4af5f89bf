package state

import (
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/implied-role/infer"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// cachedRuleSet is a rule set with the versions of its rules.
type cachedRuleSet struct {
	ruleSet  *infer.RuleSet
	versions []ruleVersion // sorted by name
	// stale means that a rule has changed since.
	stale bool
}

// ruleVersion identifies the state of a rule. It contains the spec, because a change on NATS can have the same
// generation with another spec.
type ruleVersion struct {
	name, uid  string
	generation int64
	spec       rolev1alpha1.ImpliedRolesSpec
}

func versionOfRule(r Rule) ruleVersion {
	return ruleVersion{r.Key.Name, r.UID, r.Generation, r.Value.Spec}
}

func (v ruleVersion) compareName(name string) int { return strings.Compare(v.name, name) }

// markRuleSetStale marks the rule set of a namespace as stale if a rule has changed. The informer calls it for every
// change. A change of status alone does not count, because statuses are written often and for many rules.
func (s *State) markRuleSetStale(k event.Key) {
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
		known.stale = known.stale || !has || known.versions[i] != versionOfRule(is)
	} else {
		known.stale = known.stale || has
	}
}

// markAllStale marks all rule sets as stale. The informer calls it after it was loaded again.
func (s *State) markAllStale() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.ruleSets {
		known.stale = true
	}
}

// RuleSet returns the rule set of a namespace, with rules paused for its current bindings.
func (s *State) RuleSet(namespace string) *infer.RuleSet {
	s.mu.Lock()
	known := s.ruleSets[namespace]
	if known == nil || known.stale {
		known, _ = s.loadCurrentRuleSet(namespace)
	}
	s.mu.Unlock()
	return s.WithPausedRules(namespace, known.ruleSet, SourceCountChange{})
}

// RuleSetAndRules returns the result of [State.RuleSet] with its rules, sorted by name. Both leave out rules that are
// being deleted.
func (s *State) RuleSetAndRules(namespace string) (*infer.RuleSet, []Rule) {
	s.mu.Lock()
	known, rules := s.loadCurrentRuleSet(namespace)
	s.mu.Unlock()
	return s.WithPausedRules(namespace, known.ruleSet, SourceCountChange{}), rules
}

// loadCurrentRuleSet returns the rule set of the current rules, from the cache if no rule has changed. The caller holds s.mu.
func (s *State) loadCurrentRuleSet(namespace string) (*cachedRuleSet, []Rule) {
	rules := slices.DeleteFunc(s.Rules.ListByIndex(byNamespace, namespace), func(r Rule) bool { return r.Value.DeletionTimestamp != nil })
	versions := make([]ruleVersion, len(rules))
	for i, r := range rules {
		versions[i] = versionOfRule(r)
	}
	known := s.ruleSets[namespace]
	if known == nil || !slices.Equal(known.versions, versions) {
		list := make([]infer.Rule, len(rules))
		for i, r := range rules {
			list[i] = ToInferRule(r.Value)
		}
		known = &cachedRuleSet{ruleSet: infer.NewRuleSet(namespace, list, s.Policy), versions: versions}
	}
	known.stale = false
	if s.ruleSets[namespace] = known; len(rules) == 0 {
		delete(s.ruleSets, namespace)
	}
	return known, rules
}

// SourceCountChange holds the change in the number of sources for each role.
type SourceCountChange map[infer.Role]int

// AddSource adds n for the role of a binding if the binding is a source.
func (l SourceCountChange) AddSource(b *infer.Binding, n int) {
	if b != nil && b.IsSource() {
		l[b.Role] += n
	}
}

// WithPausedRules pauses the rules that would generate too many bindings. It counts the existing sources plus those in more.
func (s *State) WithPausedRules(namespace string, rules *infer.RuleSet, more SourceCountChange) *infer.RuleSet {
	sources := s.Bindings.CountByIndex(bySource, namespace)
	for _, n := range more {
		sources += n
	}
	return rules.WithPausedRules(sources, func(r infer.Role) int { return s.Bindings.CountByIndex(bySource, roleIndexKey(namespace, r)) + more[r] })
}

// CountCycles counts the sets of roles that all imply each other, in all namespaces.
func (s *State) CountCycles() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, known := range s.ruleSets {
		n += len(known.ruleSet.Cycles())
	}
	return n
}
