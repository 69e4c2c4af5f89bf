package openfga

import (
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// model is a policy in the terms of OpenFGA: types with definitions.
type model struct {
	policy  *policy.Policy
	options Options
	// definitions holds the definitions of each type, sorted by name.
	definitions [][]definition
}

// definition is one relation of a type in OpenFGA. It is a relation of the policy, an action, or the relation that
// holds the role bindings of an action.
type definition struct {
	name string
	// relation or bound is the origin of the definition.
	relation *policy.Relation
	bound    *policy.Binding
	role     bool
}

func newModel(p *policy.Policy, o Options) *model {
	m := &model{policy: p, options: o.OrDefault(), definitions: make([][]definition, len(p.Types))}
	for i, t := range p.Types {
		m.definitions[i] = definitions(t, p.Options)
	}
	return m
}

func definitions(t *policy.Type, o policy.Options) []definition {
	all := make([]definition, 0, len(t.Relations)+2*len(t.Bindings))
	for _, r := range t.Relations {
		all = append(all, definition{name: r.Name, relation: r})
	}
	for _, b := range t.Bindings {
		all = append(all, definition{name: b.Action, bound: b})
		if b.RoleBinding {
			all = append(all, definition{name: o.RoleRelationOf(b.Action), bound: b, role: true})
		}
	}
	slices.SortFunc(all, func(a, b definition) int { return strings.Compare(a.name, b.name) })
	return all
}

// source returns the document with the definition. It is nil for a type that no document declares.
func (d definition) source() *policy.Source {
	if d.bound != nil {
		return d.bound.Source
	}
	return d.relation.Source
}
