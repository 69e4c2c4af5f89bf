package policy_test

import (
	"fmt"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func ExamplePolicy() {
	const text = `
resourceTypes:
  - {name: tenant, idPrefix: tnnt}
  - {name: folder, idPrefix: fldr, relationships: [{relation: parent, targetTypes: [container]}]}
unions:
  - {name: container, resourceTypes: [folder, tenant]}
actions:
  - name: folder_open
actionBindings:
  - {actionName: folder_open, typeName: tenant, conditions: [{roleBinding: {}}]}
  - actionName: folder_open
    typeName: folder
    conditions:
      - relationshipAction: {relation: parent, actionName: folder_open}
`
	p, found := check.Files([]syntax.File{{Name: "folder.yaml", Content: []byte(text)}}, syntax.ParseLimits{}, policy.Options{})
	if found.HasErrors() {
		fmt.Println(found)
		return
	}
	folder := p.FindType("folder")
	for _, target := range folder.FindRelation("parent").Targets {
		fmt.Println("a folder is in a", target.Name)
	}
	for _, b := range folder.Bindings {
		fmt.Println(b.Action, "by a role:", b.RoleBinding, "through:", b.Steps[0].Relation)
	}
	// Output:
	// a folder is in a folder
	// a folder is in a tenant
	// folder_open by a role: false through: parent
}

func ExampleDiagnosticCollector() {
	source := &policy.DocumentSource{File: "folder.yaml", Document: 1}
	var found policy.DiagnosticCollector
	found.Add(source.PlaceAt(policy.TextPosition(3, 9)), policy.CodeUnknownType, `target "tenat" is not declared`, "correct the name")
	for _, d := range found.Diagnostics() {
		fmt.Println(d)
	}
	// Output:
	// folder.yaml:3:9: E-UNKNOWN-TYPE target "tenat" is not declared
}
