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
		"what is committed late is never found":   {"changes.go", "bootclock.Since(m.back) >= looksBack", "false"},
		"only the present is looked at":           {"changes.go", "since = m.last.Add(-late)", "since = m.last"},
		"another history is taken for this one":   {"changes.go", "m.tip != (change{}) && !read.seen", "m.tip != (change{}) && !read.seen && !back"},
		"every look back reads the whole store":   {"changes.go", "r.seen || c == m.tip", "r.seen && c == m.tip"},
		"what others take away is not noticed":    {"changes.go", "copied != there", "!copied && there"},
		"what others write is not noticed":        {"changes.go", "copied != there", "copied && !there"},
		"a store that is to go keeps its members": {"reconcile.go", "	if n.of.ends {\n", "	if false {\n"},
		"a membership leaves who was a member":    {"sync.go", "		p.Reporter.Watch(r.State.members(p.Key.object)...)\n", ""},
		"heirs of a role do not follow it":        {"spread.go", "		s.heirs(path(k.Namespace, k.Name), keys)\n", ""},
		"what an object was is forgotten":         {"table.go", "	for _, o := range t.rows.Gone(k) {", "	for _, o := range t.rows.Gone(k)[:0] {"},
		"a kind that comes back as it was is not": {"state.go", "	clear(s.judged)\n", ""},
		"the bus is believed":                     {"sync.go", "	if err := r.Confirmer.Confirm(ctx, statements...); err != nil {\n		return err\n	}\n", ""},
		"the bus is believed of bindings":         {"sources.go", "[]confirm.Statement{s.bindings.statement(b)}, s.roles", "[]confirm.Statement{}, s.roles"},
		"the bus is believed of memberships":      {"sources.go", "[]confirm.Statement{s.memberships.statement(m)}", "[]confirm.Statement{}"},
		"the bus is believed of who owns what":    {"sources.go", "slices.Concat(its, parent)", "parent"},
		"a review that failed is done":            {"changes.go", "	if !lost && read.newest", "	if read.newest"},
		"half a list is believed to be all":       {"changes.go", "	m.compare(read.is) // As far as it was read: that is not read again.\n", "	if err == nil {\n		m.compare(read.is)\n	}\n"},
		"a finalizer holds up who depends on it":  {"spread.go", "	return r.letGo(ctx, p) // Last: nothing that is taken away waits for it.\n", "	return nil\n"},
		"a restored store is read and forgotten":  {"load.go", "!maps.Equal(held[object], m.objects[object])", "false"},
	}
}

func TestEveryMutantDies(t *testing.T) {
	mutant.Kill(t, ".", mutants(), []string{"."})
}
