package openfga_test

import (
	"fmt"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/openfga"
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

func ExampleCompileDSL() {
	p, found := check.Files([]syntax.File{{Name: "folder.yaml", Content: []byte(folders)}}, syntax.ParseLimits{}, policy.Options{})
	if found.HasErrors() {
		fmt.Println(found)
		return
	}
	model, found := openfga.CompileDSL(p, openfga.Options{})
	fmt.Printf("%s%v", model, found)
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
	// []
}

// Each owner of documents has a module. The undeclared types of roles and subjects have one, too.
func ExampleCompileModules() {
	p, found := check.Files([]syntax.File{{Name: "folder.yaml", Content: []byte(folders)}}, syntax.ParseLimits{}, policy.Options{})
	if found.HasErrors() {
		fmt.Println(found)
		return
	}
	modules, _ := openfga.CompileModules(p, openfga.Options{})
	fmt.Printf("%s", openfga.ModFile(modules))
	for _, m := range modules {
		fmt.Printf("\n# %s\n%s", m.File, m.Content)
	}
	// Output:
	// schema: '1.2'
	// contents:
	//   - core.fga
	//   - storage-api.fga
	//
	// # core.fga
	// module core
	//
	// type role
	//   relations
	//     define subject: [user]
	//
	// type user
	//
	// # storage-api.fga
	// module storage-api
	//
	// type folder
	//   relations
	//     define open: open_role or open from parent
	//     define open_role: [role#subject]
	//     define parent: [folder]
}
