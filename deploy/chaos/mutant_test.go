//go:build e2e

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is a service with a bug put in on purpose.
type mutant struct {
	service string
	// file is below services/; each text of before becomes that of after.
	file          string
	before, after []string
}

func mutants() map[string]mutant {
	return map[string]mutant{
		"a dropped deletion": {
			service: "implied-role", file: "internal/topology/streams.go",
			before: []string{"\tchange.PublishedAt = meta.Timestamp\n"},
			after:  []string{"\tchange.Deleted = change.Deleted && change.Key.Resource != \"impliedroles\"\n"},
		},
		"a forgotten tuple": {
			service: "tuple-sync", file: "internal/fga/write.go",
			before: []string{"range slices.Chunk(wanted.without(remove), c.maxTuples)"},
			after:  []string{"range slices.Chunk(wanted.without(remove[min(1, len(remove)/2):]), c.maxTuples)"},
		},
		"a target that stays when it is gone": {
			service: "webhook", file: "webhook/targets.go",
			before: []string{"\ttarget := targetOf(o.Value)\n"},
			after:  []string{"\tif o.Value == nil {\n\t\treturn\n\t}\n\ttarget := targetOf(o.Value)\n"},
		},
		// What was revoked long ago is there again for a moment; at rest nothing is to be seen of it.
		"a grant after revocation": {
			service: "tuple-sync", file: "internal/fga/write.go",
			before: []string{"\t\"slices\"\n", "\tfor chunk := range slices.Chunk(wanted.without(remove), c.maxTuples) {\n"},
			after: []string{"\t\"slices\"\n\t\"time\"\n", `	for _, late := range remove[:min(1, len(remove))] {
		ctx := context.WithoutCancel(ctx)
		time.AfterFunc(20*time.Second, func() {
			if _, there, err := c.ReadTuple(ctx, storeID, late); there || err != nil {
				return
			}
			_ = c.add(ctx, storeID, "", []*openfgav1.TupleKey{late})
			<-time.After(3 * time.Second)
			_ = c.remove(ctx, storeID, tuples{}.without([]*openfgav1.TupleKey{late}))
		})
	}
	for chunk := range slices.Chunk(wanted.without(remove), c.maxTuples) {
`},
		},
	}
}

// changed is the text of the file with the bug.
func (m mutant) changed(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "services", m.file))
	if err != nil {
		t.Fatal(err)
	}
	changed := string(text)
	for i, before := range m.before {
		if strings.Count(changed, before) != 1 {
			t.Fatalf("%s does not have %q once: the code has changed, and the mutant must follow", m.file, before)
		}
		changed = strings.Replace(changed, before, m.after[i], 1)
	}
	return changed
}

func TestEachBugIsOneOfTheCodeAsItIs(t *testing.T) {
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) { m.changed(t, checkout) })
	}
}
