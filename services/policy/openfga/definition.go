package openfga

import (
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// policyModel is a policy in the terms of OpenFGA: types with definitions.
type policyModel struct {
	policy  *policy.Policy
	options Options
	// definitions holds the definitions of each type, sorted by name.
	definitions [][]relationDefinition
}

// relationDefinition is one relation of a type in OpenFGA. It is a relation of the policy, an action, or the relation that
// holds the role bindings of an action.
type relationDefinition struct {
	name string
	// relation or bound is the origin of the definition.
	relation *policy.Relation
	bound    *policy.Binding
	role     bool
}

func newPolicyModel(p *policy.Policy, o Options) *policyModel {
	m := &policyModel{policy: p, options: o.OrDefault(), definitions: make([][]relationDefinition, len(p.Types))}
	for i, t := range p.Types {
		m.definitions[i] = relationDefinitions(t, p.Options)
	}
	return m
}

func relationDefinitions(t *policy.Type, o policy.Options) []relationDefinition {
	all := make([]relationDefinition, 0, len(t.Relations)+2*len(t.Bindings))
	for _, r := range t.Relations {
		all = append(all, relationDefinition{name: r.Name, relation: r})
	}
	for _, b := range t.Bindings {
		all = append(all, relationDefinition{name: b.Action, bound: b})
		if b.RoleBinding {
			all = append(all, relationDefinition{name: o.RoleRelationOf(b.Action), bound: b, role: true})
		}
	}
	slices.SortFunc(all, func(a, b relationDefinition) int { return strings.Compare(a.name, b.name) })
	return all
}

// sourceDocument returns the document with the definition. It is nil for a type that no document declares.
func (d relationDefinition) sourceDocument() *policy.DocumentSource {
	if d.bound != nil {
		return d.bound.Source
	}
	return d.relation.Source
}
