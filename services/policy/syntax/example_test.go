package syntax_test

import (
	"fmt"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func ExampleParseFiles() {
	const text = `
# Provided by storage-api
resourceTypes:
  - name: folder
    idPrefix: fldr
action:
  - name: open
`
	documents, found := syntax.ParseFiles([]syntax.File{{Name: "folder.yaml", Content: []byte(text)}}, syntax.ParseLimits{})
	for _, d := range documents {
		name := d.ResourceTypes[0].Name
		fmt.Println(name.Text, "of", d.Source.Owner, "is at", d.Source.PlaceAt(name.At))
	}
	for _, d := range found {
		fmt.Println(d)
		fmt.Println(d.Hint)
	}
	// Output:
	// folder of storage-api is at folder.yaml:4:11
	// folder.yaml:6:1: E-UNKNOWN-KEY a document has no key "action"
	// did you mean actions?
}

func ExampleSetObjectPositions() {
	d := syntax.SetObjectPositions(&syntax.Document{
		Source:  &policy.DocumentSource{File: "policydocument/storage/folders", Owner: "storage"},
		Actions: []syntax.Action{{Name: syntax.Name{Text: "open"}}, {Name: syntax.Name{Text: "close"}}},
	}, "spec")
	fmt.Println(d.Source.PlaceAt(d.Actions[1].Name.At))
	// Output:
	// policydocument/storage/folders: spec.actions[1].name
}
