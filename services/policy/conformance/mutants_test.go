//go:build mutants

package conformance

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

// mutants are bugs in the library.
func mutants() map[string]mutant.Mutant {
	return map[string]mutant.Mutant{
		"SpiceDB: every step with the action of the first": {
			"spicedb/schema.go", `w.out.WriteText(separator, s.Relation, "->", s.Action)`, `w.out.WriteText(separator, s.Relation, "->", b.Steps[0].Action)`,
		},
		"SpiceDB: every step with the relation of the first": {
			"spicedb/schema.go", `w.out.WriteText(separator, s.Relation, "->", s.Action)`, `w.out.WriteText(separator, b.Steps[0].Relation, "->", s.Action)`,
		},
		"SpiceDB: the third condition is demanded": {
			"spicedb/schema.go", "\tfor _, s := range b.Steps {\n", "\tfor i, s := range b.Steps {\n\t\tif i == 2 || i == 1 && b.RoleBinding {\n\t\t\tseparator = \" & \"\n\t\t}\n",
		},
		"SpiceDB: a fourth condition is left out": {
			"spicedb/schema.go", "range b.Steps {", "range b.Steps[:min(3, len(b.Steps))] {",
		},
		"SpiceDB: a role gives nothing where there are steps": {
			"spicedb/schema.go", "\tif b.RoleBinding {\n\t\tw.out.WriteText(b.Action, w.options", "\tif b.RoleBinding && len(b.Steps) == 0 {\n\t\tw.out.WriteText(b.Action, w.options",
		},
		"SpiceDB: the last of three targets is left out": {
			"spicedb/schema.go", "range r.Targets {", "range r.Targets[:len(r.Targets)-len(r.Targets)/3] {",
		},
		"OpenFGA, JSON: every step with the action of the first": {
			"openfga/json.go", `"computedUserset":{"relation":"` + "`" + `, s.Action,`, `"computedUserset":{"relation":"` + "`" + `, b.Steps[0].Action,`,
		},
		"OpenFGA, JSON: three conditions are all demanded": {
			"openfga/json.go", "\t\tw.out.WriteText(`{\"union\":{\"child\":[`)\n",
			"\t\tkind := \"union\"\n\t\tif len(b.Steps) > 2 {\n\t\t\tkind = \"intersection\"\n\t\t}\n\t\tw.out.WriteText(`{\"`, kind, `\":{\"child\":[`)\n",
		},
		"OpenFGA, DSL: the third condition excludes": {
			"openfga/dsl.go", "\tfor _, s := range b.Steps {\n", "\tfor i, s := range b.Steps {\n\t\tif i == 2 {\n\t\t\tseparator = \" but not \"\n\t\t}\n",
		},
		"OpenFGA, DSL: a step leads to the action that it gives": {
			"openfga/dsl.go", `w.out.WriteText(separator, s.Action,`, `w.out.WriteText(separator, b.Action,`,
		},
		"all: of the steps through one relation one counts": {
			"check/bind.go", "\tfor i, s := range b.steps {\n", "\tfor i, s := range b.steps {\n\t\tif i > 0 && s.Relation == b.steps[i-1].Relation && s.Action != b.steps[i-1].Action {\n\t\t\tcontinue\n\t\t}\n",
		},
		"all: a role gives nothing on the members of a union": {
			"check/bind.go", "b.RoleBinding, role = true, condition.At", "b.RoleBinding, role = len(b.members) < 3 || len(written.Conditions) == 1, condition.At",
		},
		"all: a union hides the other targets of its relation": {
			"check/expand.go", "if len(r.refs) == 1 && r.refs[0].u != nil {", "if r.refs != nil && r.refs[0].u != nil {",
		},
		"all: a union loses its last member": {
			"check/expand.go", "u.Members = policyTypes(u.members)", "u.members = u.members[:len(u.members)-len(u.members)/3]\n\t\tu.Members = policyTypes(u.members)",
		},
	}
}

func TestEveryMutantDies(t *testing.T) {
	mutant.KillAll(t, "..", mutants(), []string{".", "-run", "^TestTheEngines"}, []string{"."}, []string{"github.com/entail-dev/entail/services/policy/..."})
}
