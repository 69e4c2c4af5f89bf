package explain_test

import (
	"fmt"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/explain"
	"github.com/entail-dev/entail/services/policy/syntax"
)

const folders = `
# Provided by storage-api
resourceTypes:
  - {name: folder, idPrefix: fldr, relationships: [{relation: parent, targetTypes: [folder]}]}
actions:
  - name: open
actionBindings:
  - actionName: open
    typeName: folder
    conditions:
      - roleBinding: {}
      - relationshipAction: {relation: parent, actionName: open}
`

func ExampleAction() {
	p, found := check.Files([]syntax.File{{Name: "folder.yaml", Content: []byte(folders)}}, syntax.ParseLimits{}, policy.Options{})
	if found.HasErrors() {
		fmt.Println(found)
		return
	}
	tree, err := explain.Action(p, "folder", "open")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(tree.RenderText())
	_, err = explain.Action(p, "folder", "opne")
	fmt.Println(err)
	// Output:
	// open on folder (folder.yaml:8:5, storage-api)
	// ├─ role binding in open_role, of role#subject
	// └─ parent -> open (folder.yaml:4:63, storage-api)
	//    └─ on folder: recursion, the same on the next folder
	// type folder has no action "opne": did you mean open?
}
