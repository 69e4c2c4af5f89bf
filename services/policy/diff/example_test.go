package diff_test

import (
	"fmt"
	"strings"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/diff"
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

// read returns the policy in one file.
func read(text string) *policy.Policy {
	p, found := check.Files([]syntax.File{{Name: "folder.yaml", Content: []byte(text)}}, syntax.ParseLimits{}, policy.Options{})
	if found.HasErrors() {
		fmt.Println(found)
	}
	return p
}

func ExamplePolicies() {
	before := read(folders)
	after := read(strings.Replace(folders, "      - roleBinding: {}\n", "", 1))
	changes := diff.Policies(before, after)
	fmt.Println("the worst is", diff.WorstClass(changes))
	fmt.Print(diff.RenderText(changes))
	// Output:
	// the worst is breaking-for-data
	// breaking for data:
	//   folder.yaml:8:5: open on folder is no longer allowed by a role binding, and stored role bindings in open_role would be orphaned
	//   type role is removed: stored relationships of its resources would be orphaned, and no user would have access to them
	//   type user is removed: stored relationships of its resources would be orphaned, and no user would have access to them
}
