package report_test

import (
	"fmt"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/report"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func ExampleRenderText() {
	const text = `
resourceTypes: [{name: folder, idPrefix: fldr}]
actions: [{name: open}, {name: open}]
`
	file := syntax.File{Name: "folder.yaml", Content: []byte(text)}
	_, found := check.Files([]syntax.File{file}, syntax.ParseLimits{}, policy.Options{})
	fmt.Print(report.RenderText(found, file))
	// Output:
	// folder.yaml:3:32: E-DUP-ACTION action "open" is declared twice
	//     | actions: [{name: open}, {name: open}]
	//     |                                ^
	//     folder.yaml:3:18: the first
	//     hint: keep one declaration
}
