package lint_test

import (
	"fmt"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/lint"
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

func ExamplePolicy() {
	p, found := check.Files([]syntax.File{{Name: "folder.yaml", Content: []byte(folders)}}, syntax.ParseLimits{}, policy.Options{})
	if found.HasErrors() {
		fmt.Println(found)
		return
	}
	for _, d := range lint.Policy(p) {
		fmt.Println(d)
		fmt.Println(d.Hint)
	}
	// Output:
	// folder.yaml:4:63: W-DEEP-RECURSION relation "parent" of "folder" can lead through "folder" to ever more objects of its own type
	// keep objects less than 24 levels deep: OpenFGA answers with an error beyond, SpiceDB beyond 50
}
