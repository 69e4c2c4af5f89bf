package format_test

import (
	"fmt"

	"github.com/entail-dev/entail/services/policy/format"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func ExampleSource() {
	const text = `
# All that can be done.
actions: [{name: open}]
RESOURCETYPES:
- {idPrefix: fldr, name: folder}
`
	formatted, found := format.Source(syntax.File{Name: "folder.yaml", Content: []byte(text)})
	fmt.Printf("%s%v", formatted, found)
	// Output:
	// # All that can be done.
	// resourceTypes:
	//   - name: folder
	//     idPrefix: fldr
	// actions:
	//   - name: open
	// []
}
