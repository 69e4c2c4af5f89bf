package check_test

import (
	"fmt"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/load"
	"github.com/entail-dev/entail/services/policy/openfga"
)

func ExampleFiles() {
	const text = `
resourceTypes:
  - name: folder
    idPrefix: fldr
    relationships:
      - relation: parent
        targetTypes:
          - name: folder
actions:
  - name: open
actionBindings:
  - actionName: open
    typeName: folder
    conditions:
      - roleBinding: {}
      - relationshipAction:
          relation: parent
          actionName: open
`
	p, found := check.Files([]load.File{{Name: "folder.yaml", Content: []byte(text)}}, load.Limits{}, policy.Options{})
	if p == nil {
		fmt.Println(found)
		return
	}
	model, _ := openfga.DSL(p, openfga.Options{})
	fmt.Printf("%s", model)
	// Output:
	// model
	//   schema 1.1
	//
	// type folder
	//   relations
	//     define open: open_role or open from parent
	//     define open_role: [role#subject]
	//     define parent: [folder]
	//
	// type role
	//   relations
	//     define subject: [user]
	//
	// type user
}

func ExampleDocuments() {
	object := &policy.Document{
		Source:  &policy.Source{File: "policydocument/storage/folders", Owner: "storage/folders"},
		Actions: []policy.Action{{Name: policy.Name{Text: "Open"}}},
	}
	load.Typed(object, "spec")
	_, found := check.Documents([]*policy.Document{object}, policy.Options{})
	for _, d := range found {
		fmt.Println(d)
	}
	// Output:
	// E-EMPTY there is no policy: no document declares a resource type
	// policydocument/storage/folders: spec.actions[0].name: E-NAME "Open" cannot name an action
}
