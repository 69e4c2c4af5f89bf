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
			before: []string{"\tif typ != \"\" {\n"},
			after:  []string{"\tif o, _ := s.targets.objects.Get(key); typ != \"\" && o.Value != nil {\n"},
		},
		"a target whose owner nobody looks at": {
			service: "tuple-sync", file: "tuple-sync/mirror/targets.go",
			before: []string{"\treturn len(f.target.Owners) > 0 || s.bindings"},
			after:  []string{"\treturn s.bindings"},
		},
		"a target that is taken for the one before": {
			service: "tuple-sync", file: "internal/iam/tuple.go",
			before: []string{"found.UID != selector.ResourceRef.UID"},
			after:  []string{"found.UID == \"-\""},
		},
		"an owner that is taken for the one before": {
			service: "tuple-sync", file: "internal/iam/objects.go",
			before: []string{"owner.UID == t.UID"},
			after:  []string{"t.UID != \"\""},
		},
		"a target that counts while it is deleted": {
			service: "tuple-sync", file: "tuple-sync/mirror/table.go",
			before: []string{"\t\treturn t.cfg.target(o.Value)\n"},
			after:  []string{"\t\ttarget, _ := t.cfg.target(o.Value)\n\t\treturn target, true\n"},
		},
		// As the next one, of what webhook answers.
		"a target that is back for a moment": {
			service: "webhook", file: "webhook/targets.go",
			before: []string{"\t\"sync/atomic\"\n", "\t\tx.SetTarget(typ, key.Namespace, key.Name, s.targets.named(typ, key))\n"},
			after: []string{"\t\"sync/atomic\"\n\t\"time\"\n", `	target := s.targets.named(typ, key)
	x.SetTarget(typ, key.Namespace, key.Name, target)
	gone := s.targets.objects.Gone(key)
	if target != nil || len(gone) == 0 {
		return
	}
	time.AfterFunc(20*time.Second, func() {
		if _, there := s.targets.objects.Get(key); there {
			return
		}
		x.SetTarget(typ, key.Namespace, key.Name, targetOf(gone[0].Value))
		<-time.After(3 * time.Second)
		if _, there := s.targets.objects.Get(key); !there {
			x.SetTarget(typ, key.Namespace, key.Name, nil)
		}
	})
`},
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
