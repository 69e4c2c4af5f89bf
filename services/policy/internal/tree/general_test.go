package tree

import (
	"fmt"
	"strings"
	"testing"
)

func TestAliasesAreCountedBeforeConversion(t *testing.T) {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 20 {
		text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	made := testing.AllocsPerRun(1, func() {
		if _, err := ParseDocument(text, 1, &ParseBudget{Depth: 32, Nodes: 3_000_000, LibraryBytes: 1 << 20}); err == nil {
			t.Error("it was read")
		}
	})
	if made > 10_000 {
		t.Errorf("%v allocations", made)
	}
}
