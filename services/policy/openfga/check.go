package openfga

import (
	"fmt"
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

const (
	maxTypeName     = 254
	maxRelationName = 50
)

// CheckModel returns the reasons why OpenFGA would reject the model of a policy in one piece.
func CheckModel(p *policy.Policy, o Options) policy.Diagnostics {
	return newPolicyModel(p, o).checkModel(o, false)
}

// checkModel checks a model in one piece or in modules. The modular model is larger.
func (m *policyModel) checkModel(o Options, modular bool) policy.Diagnostics {
	c := checker{options: m.policy.Options}
	if err := o.Validate(); err != nil {
		c.found.Add(policy.Place{}, policy.CodeOption, err.Error(), "correct the option")
		return c.found.Diagnostics()
	}
	for _, t := range m.policy.Types {
		c.checkName(t.Source.PlaceAt(t.At), "type", t.Name, maxTypeName)
		for _, r := range t.Relations {
			c.checkName(r.Source.PlaceAt(r.At), "relation", r.Name, maxRelationName)
		}
	}
	c.checkActions(m.policy)
	c.checkEntrypoints(m.policy)
	c.checkSize(m, modular)
	return c.found.Diagnostics()
}

type checker struct {
	found   policy.DiagnosticCollector
	options policy.Options
}

// checkActions checks the names of bound actions, and of the relations that hold their role bindings.
func (c *checker) checkActions(p *policy.Policy) {
	bound, roles := p.BoundActions()
	for _, a := range p.Actions {
		place := a.Source.PlaceAt(a.At)
		if bound[a.Name] {
			c.checkName(place, "action", a.Name, maxRelationName)
		}
		if longest := maxRelationName - len(c.options.RoleSuffix); roles[a.Name] && len(a.Name) > longest && len(a.Name) <= maxRelationName {
			c.found.Add(place, policy.CodeOpenFGAName,
				fmt.Sprintf("action %.64q has %d characters, of at most %d for OpenFGA where it has role bindings, which add %s",
					a.Name, len(a.Name), longest, c.options.RoleSuffix), "shorten the name")
		}
	}
}

func (c *checker) checkName(place policy.Place, what, name string, longest int) {
	if len(name) > longest {
		c.found.Add(place, policy.CodeOpenFGAName,
			fmt.Sprintf("%s %.64q has %d characters, of at most %d for OpenFGA", what, name, len(name), longest), "shorten the name")
	}
	if isReservedWord(name) {
		c.found.Add(place, policy.CodeOpenFGAKeyword, fmt.Sprintf("%s %q is a word of OpenFGA's language", what, name), "choose another name")
	}
}

// isReservedWord reports whether a word is reserved in the DSL or in the server.
func isReservedWord(s string) bool {
	return slices.Contains([]string{
		"self", "this", "and", "or", "from", "with", "define", "relations", "condition", "in", "true", "false", "null",
	}, s)
}

// checkEntrypoints rejects actions that no subject can ever have, because OpenFGA rejects a model with one.
func (c *checker) checkEntrypoints(p *policy.Policy) {
	types := map[*policy.Binding]string{}
	for _, g := range p.Ungranted {
		if _, found := types[g.Binding]; !found {
			types[g.Binding] = g.Type.Name
		}
	}
	for b, t := range types {
		c.found.Add(b.Source.PlaceAt(b.At), policy.CodeOpenFGANoEntrypoint,
			fmt.Sprintf("nobody can ever have action %.64q on %.64q, and OpenFGA refuses such a model", b.Action, t),
			"add `roleBinding: {}` here, or where the relations lead")
	}
}

func (c *checker) checkSize(m *policyModel, modular bool) {
	if types, limit := len(m.policy.Types), m.options.MaxTypes; limit >= 0 && types > limit {
		c.found.Add(policy.Place{}, policy.CodeOpenFGATypes,
			fmt.Sprintf("the model has %d types, of at most %d for OpenFGA", types, limit), "remove types, or raise the limit here and in OpenFGA")
	}
	limit := m.options.MaxBytes
	if limit < 0 {
		return
	}
	if size := m.modelSize(modular); size > limit {
		c.found.Add(policy.Place{}, policy.CodeOpenFGASize,
			fmt.Sprintf("the model has %d bytes, of at most %d for OpenFGA", size, limit),
			"bind fewer actions or shorten names, or raise the limit here and in OpenFGA")
	}
}
