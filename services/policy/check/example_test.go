package check_test

import (
	"fmt"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// Each service has its part in its own file, and the parts refer to each other.
func ExampleFiles() {
	const tenants = `
resourceTypes: [{name: tenant, idPrefix: tnnt}]
actions: [{name: tenant_get}]
actionBindings:
  - {actionName: tenant_get, typeName: tenant, conditions: [{roleBinding: {}}]}
`
	const folders = `
resourceTypes:
  - {name: folder, idPrefix: fldr, relationships: [{relation: owner, targetTypes: [tenant]}]}
actions: [{name: folder_get}]
actionBindings:
  - actionName: folder_get
    typeName: folder
    conditions:
      - relationshipAction: {relation: owner, actionName: tenant_gte}
`
	files := []syntax.File{{Name: "tenants.yaml", Content: []byte(tenants)}, {Name: "folders.yaml", Content: []byte(folders)}}
	p, found := check.Files(files, syntax.ParseLimits{}, policy.Options{})
	fmt.Println("there is a policy:", p != nil)
	for _, d := range found {
		fmt.Println(d)
	}
	// Output:
	// there is a policy: false
	// folders.yaml:9:59: E-UNKNOWN-ACTION action "tenant_gte" is not declared
}

// Documents need not come from files.
func ExampleDocuments() {
	object := syntax.SetObjectPositions(&syntax.Document{
		Source:  &policy.DocumentSource{File: "policydocument/storage/folders", Owner: "storage"},
		Actions: []syntax.Action{{Name: syntax.Name{Text: "Open"}}},
	}, "spec")
	_, found := check.Documents([]*syntax.Document{object}, policy.Options{})
	for _, d := range found {
		fmt.Println(d)
	}
	// Output:
	// E-EMPTY there is no policy: no document declares a resource type
	// policydocument/storage/folders: spec.actions[0].name: E-NAME "Open" cannot name an action
}
