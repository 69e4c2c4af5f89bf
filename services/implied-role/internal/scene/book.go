package scene

import (
	"slices"

	"github.com/entail-dev/entail/services/implied-role/infer"
)

// book is a rulebook with the rules that it was made of.
type book struct {
	*infer.Rulebook
	editions []edition
}

// edition tells whether a rule is still the same.
type edition struct {
	name, uid  string
	generation int64
}

// Rulebook is what the rules of a namespace say together, and those rules, by name. One
// that is being deleted is gone.
func (s *Scene) Rulebook(namespace string) (*infer.Rulebook, []Rule) {
	rules := slices.DeleteFunc(s.Rules.By(byNamespace, namespace), func(r Rule) bool { return r.Value.DeletionTimestamp != nil })
	return s.Limited(namespace, s.made(namespace, rules), Load{}), rules
}

// made makes a rulebook unless that has been done.
func (s *Scene) made(namespace string, rules []Rule) *infer.Rulebook {
	editions := make([]edition, len(rules))
	for i, r := range rules {
		editions[i] = edition{r.Key.Name, r.UID, r.Generation}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.books[namespace]
	if ok && slices.Equal(known.editions, editions) {
		return known.Rulebook
	}
	list := make([]infer.Rule, len(rules))
	for i, r := range rules {
		list[i] = RuleOf(r.Value)
	}
	known = book{infer.NewRulebook(namespace, list, s.Policy), editions}
	if s.books[namespace] = known; len(rules) == 0 {
		delete(s.books, namespace)
	}
	return known.Rulebook
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
func (s *Scene) Limited(namespace string, b *infer.Rulebook, more Load) *infer.Rulebook {
	sources := s.Bindings.Count(bySource, namespace)
	for _, n := range more {
		sources += n
	}
	return b.Limited(sources, func(r infer.Role) int { return s.Bindings.Count(bySource, in(namespace, r)) + more[r] })
}

// Cycles counts the sets of roles that all imply each other, in all namespaces.
func (s *Scene) Cycles() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, b := range s.books {
		n += len(b.Cycles())
	}
	return n
}
