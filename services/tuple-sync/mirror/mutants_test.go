//go:build mutants

package mirror

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/mutant"
)

// mutants are guards that are missing, each against tuples that stay, or are thought to be there, because OpenFGA's list of
// changes was believed too much.
func mutants() map[string]mutant.Mutant {
	return map[string]mutant.Mutant{
		"what is committed late is never found":  {"changes.go", "bootclock.Since(m.back) >= looksBack", "false"},
		"only the present is looked at":          {"changes.go", "since = m.last.Add(-late)", "since = m.last"},
		"another history is taken for this one":  {"changes.go", "tip != (change{}) && !seen", "tip != (change{}) && !seen && !back"},
		"every look back reads the whole store":  {"changes.go", "seen = seen || c == tip", "seen = seen && c == tip"},
		"what others take away is not noticed":   {"changes.go", "copied != there", "!copied && there"},
		"what others write is not noticed":       {"changes.go", "copied != there", "copied && !there"},
		"a restored store is read and forgotten": {"copy.go", "!maps.Equal(held[object], m.objects[object])", "false"},
	}
}

func TestEveryMutantDies(t *testing.T) {
	mutant.Kill(t, ".", mutants(), []string{"."})
}
