package graph_test

import (
	"fmt"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/graph"
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

func ExampleGraph() {
	p, found := check.Files([]syntax.File{{Name: "folder.yaml", Content: []byte(folders)}}, syntax.ParseLimits{}, policy.Options{})
	if found.HasErrors() {
		fmt.Println(found)
		return
	}
	flowchart, err := graph.FromPolicy(p, graph.Filter{}).RenderMermaid()
	if err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s", flowchart)
	// Output:
	// flowchart LR
	//   t_folder["<b>folder</b><br/><i>storage-api</i><br/>● open"]
	//   t_folder -->|"<i>parent</i><br/>open"| t_folder
	//   classDef beside stroke-dasharray: 4 3
}
