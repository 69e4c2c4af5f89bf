package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/words"
)

// findBoundType returns the type, or an error if it does not exist or lacks the action.
func findBoundType(p *policy.Policy, typeName, action string) (*policy.Type, error) {
	t := p.FindType(typeName)
	if t == nil {
		if u := p.FindUnion(typeName); u != nil {
			return nil, fmt.Errorf("%s is a union: name one of its types: %s", u.Name, words.ListSome(collectNames(u.Members, nameOfType), mostNames))
		}
		return nil, fmt.Errorf("there is no type %.64q: %s", typeName, suggestNames(typeName, "types", collectNames(p.Types, nameOfType)))
	}
	if t.FindBinding(action) != nil {
		return t, nil
	}
	bound := collectNames(t.Bindings, func(b *policy.Binding) string { return b.Action })
	declared := collectNames(p.Actions, func(a *policy.Action) string { return a.Name })
	switch {
	case slices.Contains(declared, action):
		return nil, fmt.Errorf("action %s is not bound to type %s: %s, and %s", action, t.Name, suggestActionsText(t.Name, bound), boundTypesText(p, action))
	case len(bound) > 0:
		return nil, fmt.Errorf("type %s has no action %.64q: %s", t.Name, action, suggestNames(action, "actions", bound))
	default:
		return nil, fmt.Errorf("there is no action %.64q: %s", action, suggestNames(action, "actions", declared))
	}
}

func suggestActionsText(typeName string, actions []string) string {
	if len(actions) == 0 {
		return "nothing is bound to " + typeName
	}
	return typeName + " has " + words.ListSome(actions, mostNames)
}

func boundTypesText(p *policy.Policy, action string) string {
	var types []string
	for _, t := range p.Types {
		if t.FindBinding(action) != nil {
			types = append(types, t.Name)
		}
	}
	if len(types) == 0 {
		return "the action is bound to nothing"
	}
	return "the action is bound to " + words.ListSome(types, mostNames)
}

// suggestNames returns the names that were probably meant, or else some of the known names.
func suggestNames(name, what string, known []string) string {
	switch near := nearestNames(name, known); {
	case len(near) > 0:
		return "did you mean " + strings.Join(near, " or ") + "?"
	case len(known) == 0:
		return "there are no " + what
	default:
		return "the " + what + " are " + words.ListSome(known, mostNames)
	}
}

// mostNames bounds the names that an error lists.
const mostNames = 8

func collectNames[T any](items []T, name func(T) string) []string {
	all := make([]string, len(items))
	for i, item := range items {
		all[i] = name(item)
	}
	return all
}

func nameOfType(t *policy.Type) string { return t.Name }

// nearestNames returns up to three known names with the fewest typing mistakes, if these are few.
func nearestNames(name string, known []string) []string {
	const most, maxLength = 3, 128
	if len(name) > maxLength {
		return nil
	}
	best, near := min(len(name)/2, 3)+1, []string(nil)
	for _, k := range known {
		if max(len(k)-len(name), len(name)-len(k)) > best {
			continue
		}
		switch d := words.EditDistance(name, k); {
		case d < best:
			best, near = d, []string{k}
		case d == best && len(near) > 0 && len(near) < most:
			near = append(near, k)
		}
	}
	return near
}
