package spicedb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

const (
	minName, maxName = 3, 64
	maxPrefixPart    = 63
	// maxDefinition bounds prefix and name together.
	maxDefinition = 128
)

// CheckSchema returns the reasons why SpiceDB would reject the schema of a policy. It does not check the size; [CompileSchema] does.
func CheckSchema(p *policy.Policy, o Options) policy.Diagnostics {
	c := checker{prefix: o.typePrefix()}
	if err := o.Validate(); err != nil {
		c.found.Add(policy.Place{}, policy.CodeOption, err.Error(), "correct the option")
	}
	for _, t := range p.Types {
		c.checkType(t)
	}
	c.checkActions(p)
	return c.found.Diagnostics()
}

type checker struct {
	found  policy.DiagnosticCollector
	prefix string
}

func (c *checker) checkType(t *policy.Type) {
	c.checkName(t.Source.PlaceAt(t.At), "type", t.Name)
	if length := len(c.prefix) + len(t.Name); length > maxDefinition {
		c.found.Add(t.Source.PlaceAt(t.At), policy.CodeSpiceDBName,
			fmt.Sprintf("type %.64q has %d characters with its prefix, of at most %d", t.Name, length, maxDefinition), "shorten the prefix or the name")
	}
	for _, r := range t.Relations {
		c.checkName(r.Source.PlaceAt(r.At), "relation", r.Name)
	}
}

// checkActions checks the names of bound actions, and of the relations that hold their role bindings.
func (c *checker) checkActions(p *policy.Policy) {
	bound, roles := p.BoundActions()
	for _, a := range p.Actions {
		place := a.Source.PlaceAt(a.At)
		if bound[a.Name] {
			c.checkName(place, "action", a.Name)
		}
		if longest := maxName - len(p.Options.RoleSuffix); roles[a.Name] && len(a.Name) > longest && len(a.Name) <= maxName {
			c.found.Add(place, policy.CodeSpiceDBName,
				fmt.Sprintf("action %.64q has %d characters, of at most %d for SpiceDB where it has role bindings, which add %s",
					a.Name, len(a.Name), longest, p.Options.RoleSuffix), "shorten the name")
		}
	}
}

func (c *checker) checkName(place policy.Place, what, name string) {
	switch {
	case isKeyword(name):
		c.found.Add(place, policy.CodeSpiceDBKeyword, fmt.Sprintf("%s %q is a word of SpiceDB's language", what, name), "choose another name")
	case !isSpiceDBName(name):
		c.found.Add(place, policy.CodeSpiceDBName, fmt.Sprintf("SpiceDB does not accept %s %.64q", what, name),
			fmt.Sprintf("use %d to %d characters, and no underscore at the end", minName, maxName))
	}
}

// isSpiceDBName reports whether a name of the policy language is valid in SpiceDB: ^[a-z][a-z0-9_]{1,62}[a-z0-9]$.
func isSpiceDBName(s string) bool {
	return len(s) >= minName && len(s) <= maxName && policy.IsTypeName(s) && !strings.HasSuffix(s, "_")
}

func isKeyword(s string) bool {
	return slices.Contains([]string{"definition", "caveat", "relation", "permission", "nil", "with"}, s)
}
