package spicedb_test

import (
	"fmt"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/spicedb"
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

func ExampleCompileSchema() {
	p, found := check.Files([]syntax.File{{Name: "folder.yaml", Content: []byte(folders)}}, syntax.ParseLimits{}, policy.Options{})
	if found.HasErrors() {
		fmt.Println(found)
		return
	}
	schema, found := spicedb.CompileSchema(p, spicedb.Options{Prefix: "example"})
	fmt.Printf("%s%v", schema, found)
	// Output:
	// definition example/folder {
	//   relation parent: example/folder
	//
	//   relation open_role: example/role#subject
	//
	//   permission open = open_role + parent->open
	// }
	//
	// definition example/role {
	//   relation subject: example/user
	// }
	//
	// definition example/user {
	// }
	// []
}
