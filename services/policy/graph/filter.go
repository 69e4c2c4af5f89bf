package graph

import (
	"fmt"
	"regexp"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/words"
)

// Filter selects the types that match all set expressions, and the types directly connected with them.
type Filter struct {
	// Types matches the names of types.
	Types *regexp.Regexp
	// Actions matches the names of actions. Relations without a matching flow are left out.
	Actions *regexp.Regexp
	// Owners matches the owners of types and bindings.
	Owners *regexp.Regexp
	// Focus is the name of a type. Of the selected nodes, only those at most Depth arrows away from it remain; Depth is
	// at least 1.
	Focus string
	Depth int
	// Collapse matches owners whose types are drawn as one node. It does not apply to the owner of Focus.
	Collapse *regexp.Regexp
}

// Validate returns an error unless the focus is empty or a type of the policy.
func (f Filter) Validate(p *policy.Policy) error {
	if f.Focus == "" || p.FindType(f.Focus) != nil {
		return nil
	}
	var names []string
	for _, t := range p.Types {
		names = append(names, t.Name)
	}
	return fmt.Errorf("focus: there is no type %.64q: the policy has %s", f.Focus, words.ListSome(names, mostLines))
}

func (f Filter) matchesType(t *policy.Type) bool { return matchesOrUnset(f.Types, t.Name) }

func (f Filter) matchesAction(names ...string) bool {
	for _, name := range names {
		if matchesOrUnset(f.Actions, name) {
			return true
		}
	}
	return false
}

// matchesOwner reports whether one of the sources has a matching owner.
func (f Filter) matchesOwner(sources ...*policy.DocumentSource) bool {
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

func matchesOrUnset(expression *regexp.Regexp, s string) bool {
	return expression == nil || expression.MatchString(s)
}
