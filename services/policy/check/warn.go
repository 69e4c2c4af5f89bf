package check

import "github.com/entail-dev/entail/services/policy"

// reportUnused reports declarations without an effect.
func (c *checker) reportUnused() {
	for _, a := range c.allActions {
		if !a.used {
			c.findings.Add(a.Source.PlaceAt(a.At), policy.CodeUnusedAction, "no binding has the action "+quoteName(a.Name), "bind it to a type, or remove it")
		}
	}
	for _, u := range c.allUnions {
		if !u.used {
			c.findings.Add(u.Source.PlaceAt(u.At), policy.CodeUnusedUnion, "nothing refers to the union "+quoteName(u.Name), "refer to it, or remove it")
		}
	}
	for _, t := range c.allTypes {
		if !t.used && len(t.Bindings) == 0 {
			c.findings.Add(t.Source.PlaceAt(t.At), policy.CodeUnusedType, "nothing refers to the type "+quoteName(t.Name)+", and no action is bound to it",
				"bind an action to it, or remove it")
		}
	}
}
