package graph

import (
	"fmt"
	"regexp"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/words"
)

// Filter chooses what is drawn: what matches all of the expressions that are set, and the types
// that it is directly connected with.
type Filter struct {
	// Types match the names of types.
	Types *regexp.Regexp
	// Actions match the names of actions. Relations along which none of them flows are left out.
	Actions *regexp.Regexp
	// Owners match who provides a type or a binding.
	Owners *regexp.Regexp
	// Focus is the name of a type: of what is left, all is drawn that is at most Depth arrows away from it, or one.
	Focus string
	Depth int
	// Collapse matches owners of whose types one node is drawn. The owner of Focus is none of them.
	Collapse *regexp.Regexp
}

// Validate reports whether the focus is a type of a policy.
func (f Filter) Validate(p *policy.Policy) error {
	if f.Focus == "" || p.Type(f.Focus) != nil {
		return nil
	}
	var names []string
	for _, t := range p.Types {
		names = append(names, t.Name)
	}
	return fmt.Errorf("focus: there is no type %.64q: the policy has %s", f.Focus, words.Some(names, mostLines))
}

func (f Filter) typeName(t *policy.Type) bool { return matches(f.Types, t.Name) }

func (f Filter) action(names ...string) bool {
	for _, name := range names {
		if matches(f.Actions, name) {
			return true
		}
	}
	return false
}

// owner reports whether one of the sources has an owner that matches.
func (f Filter) owner(sources ...*policy.Source) bool {
	if f.Owners == nil {
		return true
	}
	for _, s := range sources {
		if s != nil && f.Owners.MatchString(s.Owner) {
			return true
		}
	}
	return false
}

func matches(expression *regexp.Regexp, s string) bool {
	return expression == nil || expression.MatchString(s)
}
