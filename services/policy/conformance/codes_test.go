package conformance

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
)

// TestCodePageMatchesLibrary checks the page to which findings link.
func TestCodePageMatchesLibrary(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/policy-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("# What findings in a policy mean\n\nCodes that begin with E are errors: the policy is refused. Those that begin with W are warnings. " +
		"Each finding has a hint at what to do.\n")
	for _, code := range policy.AllCodes() {
		fmt.Fprintf(&want, "\n## %s\n\n%s\n", code, code.Description())
	}
	if string(page) != want.String() {
		t.Errorf("it should be\n%s", want.String())
	}
}
