package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/checker"
)

// checkout is the path of the checkout, which holds bin/, deploy/ and services/.
const checkout = "../../.."

// Finders of a bug: the campaign of CI, or only a longer one of `make nightly`.
const (
	byCI      = "CI"
	byNightly = "nightly"
)

// mutant is a service with a deliberate bug.
type mutant struct {
	// foundBy is byCI or byNightly; docs/design/reliability.md has the same table.
	foundBy string
	// shows holds the kinds of violations that the bug causes. Any other kind means another fault.
	shows   []checker.ViolationKind
	service string
	// file is relative to services/. Each text of before is replaced by the same element of after.
	file          string
	before, after []string
}

func mutants() map[string]mutant {
	return map[string]mutant{
		"implied-role drops the deletion of an ImpliedRole": {
			foundBy: byNightly, shows: []checker.ViolationKind{checker.Loss},
			service: "implied-role", file: "internal/topology/streams.go",
			before: []string{"\tif change.PublishedAt = meta.Timestamp; msg"},
			after: []string{"\tchange.Deleted = change.Deleted && change.Key.Resource != \"impliedroles\"\n" +
				"\tif change.PublishedAt = meta.Timestamp; msg"},
		},
		"tuple-sync leaves a revoked tuple in OpenFGA": {
			foundBy: byCI, shows: []checker.ViolationKind{checker.Loss},
			service: "tuple-sync", file: "internal/fga/write.go",
			before: []string{"range slices.Chunk(wanted.removableKeys(remove), c.maxTuples)"},
			after:  []string{"range slices.Chunk(wanted.removableKeys(remove[min(1, len(remove)/2):]), c.maxTuples)"},
		},
		"webhook keeps a deleted target": {
			foundBy: byNightly, shows: []checker.ViolationKind{checker.Loss},
			service: "webhook", file: "webhook/targets.go",
			before: []string{"\tif typ != \"\" {\n"},
			after:  []string{"\tif o, _ := s.targets.objects.Get(key); typ != \"\" && o.Value != nil {\n"},
		},
		"tuple-sync ignores changes of a target's owners": {
			foundBy: byNightly, shows: []checker.ViolationKind{checker.Loss},
			service: "tuple-sync", file: "tuple-sync/derived/targets.go",
			before: []string{"\treturn len(f.target.Owners) > 0 || s.bindings"},
			after:  []string{"\treturn s.bindings"},
		},
		"tuple-sync ignores the UID of a target": {
			foundBy: byNightly, shows: []checker.ViolationKind{checker.Loss},
			service: "tuple-sync", file: "internal/iam/tuple.go",
			before: []string{"found.UID != selector.ResourceRef.UID"},
			after:  []string{"found.UID == \"-\""},
		},
		"tuple-sync ignores the UID of an owner": {
			foundBy: byNightly, shows: []checker.ViolationKind{checker.Loss},
			service: "tuple-sync", file: "internal/iam/objects.go",
			before: []string{"owner.UID == t.UID"},
			after:  []string{"t.UID != \"\""},
		},
		"tuple-sync counts a target that is being deleted": {
			foundBy: byCI, shows: []checker.ViolationKind{checker.Loss},
			service: "tuple-sync", file: "tuple-sync/derived/table.go",
			before: []string{"\t\treturn t.cfg.target(o.Value)\n"},
			after:  []string{"\t\ttarget, _ := t.cfg.target(o.Value)\n\t\treturn target, true\n"},
		},
		"webhook brings a deleted target back for three seconds": {
			foundBy: byNightly, shows: []checker.ViolationKind{checker.Allow},
			service: "webhook", file: "webhook/targets.go",
			before: []string{"\t\"sync/atomic\"\n", "\t\tx.SetTarget(typ, key.Namespace, key.Name, s.targets.findTarget(typ, key))\n"},
			after: []string{"\t\"sync/atomic\"\n\t\"time\"\n", `	target := s.targets.findTarget(typ, key)
	x.SetTarget(typ, key.Namespace, key.Name, target)
	gone := s.targets.objects.Tombstones(key)
	if target != nil || len(gone) == 0 {
		return
	}
	time.AfterFunc(20*time.Second, func() {
		if _, there := s.targets.objects.Get(key); there {
			return
		}
		x.SetTarget(typ, key.Namespace, key.Name, targetOfObject(gone[0].Value))
		<-time.After(3 * time.Second)
		if _, there := s.targets.objects.Get(key); !there {
			x.SetTarget(typ, key.Namespace, key.Name, nil)
		}
	})
`},
		},
		// A system at rest shows neither this bug nor the one before it.
		"tuple-sync writes a revoked tuple again for three seconds": {
			foundBy: byNightly, shows: []checker.ViolationKind{checker.Leak, checker.Allow},
			service: "tuple-sync", file: "internal/fga/write.go",
			before: []string{"\t\"slices\"\n", "\tfor chunk := range slices.Chunk(wanted.removableKeys(remove), c.maxTuples) {\n"},
			after: []string{"\t\"slices\"\n\t\"time\"\n", `	for _, late := range remove[:min(1, len(remove))] {
		ctx := context.WithoutCancel(ctx)
		time.AfterFunc(20*time.Second, func() {
			if _, there, err := c.ReadTuple(ctx, storeID, late); there || err != nil {
				return
			}
			_ = c.writeTupleChunk(ctx, storeID, "", []*openfgav1.TupleKey{late})
			<-time.After(3 * time.Second)
			_ = c.deleteTupleChunk(ctx, storeID, tupleSet{}.removableKeys([]*openfgav1.TupleKey{late}))
		})
	}
	for chunk := range slices.Chunk(wanted.removableKeys(remove), c.maxTuples) {
`},
		},
	}
}

// changed returns the text of the file with the bug.
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

func TestMutantsChangeTheCodeAsItIs(t *testing.T) {
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) { m.changed(t, checkout) })
	}
}

// documented matches a row of the table of bugs in docs/design/reliability.md.
var documented = regexp.MustCompile(`(?m)^\| ([^|]+) \| (` + byCI + `|` + byNightly + `) \|$`)

func TestReliabilityDocumentListsEveryMutantWithItsFinder(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(checkout, "docs", "design", "reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, row := range documented.FindAllStringSubmatch(string(text), -1) {
		found[row[1]] = row[2]
	}
	for name, m := range mutants() {
		if found[name] != m.foundBy {
			t.Errorf("docs/design/reliability.md: %q has the finder %q, want %q", name, found[name], m.foundBy)
		}
		delete(found, name)
	}
	for name := range found {
		t.Errorf("docs/design/reliability.md: %q is no mutant", name)
	}
}
