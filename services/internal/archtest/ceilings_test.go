package archtest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exceeded is a count that its ceiling does not allow.
type exceeded struct {
	tree, measure string
	got, ceiling  int
}

func (e exceeded) String() string {
	if e.got < e.ceiling {
		return fmt.Sprintf("%s: %s: got %d, below the ceiling %d; lower it: go test ./internal/archtest -update", e.tree, e.measure, e.got, e.ceiling)
	}
	return fmt.Sprintf("%s: %s: got %d, want at most %d:", e.tree, e.measure, e.got, e.ceiling)
}

// isClearlyBelow reports whether a ceiling is so far above the count that it must be lowered.
func isClearlyBelow(got, ceiling int) bool { return ceiling-got > 5+ceiling/10 }

// compareWithCeilings returns the counts above or clearly below the ceilings of a file. With -update it lowers
// the ceilings instead. A tree without a row gets one.
func compareWithCeilings(t *testing.T, file string, measures []string, counts map[string]map[string]int) []exceeded {
	t.Helper()
	ceilings := readCeilings(t, file, measures)
	var broken []exceeded
	for _, tree := range trees() {
		if ceilings[tree] == nil && *update {
			ceilings[tree] = counts[tree]
		}
		for _, measure := range measures {
			got, ceiling := counts[tree][measure], ceilings[tree][measure]
			if *update {
				ceilings[tree][measure] = min(got, ceiling)
			}
			if got > ceiling || isClearlyBelow(got, ceiling) && !*update {
				broken = append(broken, exceeded{tree, measure, got, ceiling})
			}
		}
	}
	if *update {
		writeCeilings(t, file, measures, ceilings)
	}
	return broken
}

// readCeilings reads a table whose first row names the measures. Each further row belongs to a tree.
func readCeilings(t *testing.T, file string, measures []string) map[string]map[string]int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	ceilings := map[string]map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if i == 0 && slices.Equal(fields[1:], measures) {
			continue
		}
		if len(fields) != len(measures)+1 || !slices.Contains(trees(), fields[0]) {
			t.Fatalf("%s: got row %q, want a tree and %d counts; delete the row and run -update", file, line, len(measures))
		}
		ceilings[fields[0]] = map[string]int{}
		for j, measure := range measures {
			if ceilings[fields[0]][measure], err = strconv.Atoi(fields[j+1]); err != nil {
				t.Fatalf("%s: %s: %v", file, line, err)
			}
		}
	}
	return ceilings
}

func writeCeilings(t *testing.T, file string, measures []string, ceilings map[string]map[string]int) {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "%-25s", "tree")
	for _, measure := range measures {
		fmt.Fprintf(&out, " %*s", max(5, len(measure)), measure)
	}
	for _, tree := range trees() {
		fmt.Fprintf(&out, "\n%-25s", tree)
		for _, measure := range measures {
			fmt.Fprintf(&out, " %*d", max(5, len(measure)), ceilings[tree][measure])
		}
	}
	if err := os.WriteFile(file, []byte(out.String()+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestIsClearlyBelow(t *testing.T) {
	for name, test := range map[string]struct {
		got, ceiling int
		want         bool
	}{
		"equal": {100, 100, false}, "a little less": {90, 100, false}, "much less": {84, 100, true}, "few": {0, 5, false}, "none of six": {0, 6, true},
	} {
		if got := isClearlyBelow(test.got, test.ceiling); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

func TestCeilingCheckFindsExcess(t *testing.T) {
	ceilings, counts := map[string]map[string]int{}, map[string]map[string]int{}
	for _, tree := range trees() {
		ceilings[tree], counts[tree] = map[string]int{"long": 10}, map[string]int{"long": 10}
	}
	file := t.TempDir() + "/ceilings.txt"
	writeCeilings(t, file, []string{"long"}, ceilings)
	if got := compareWithCeilings(t, file, []string{"long"}, counts); len(got) > 0 {
		t.Errorf("counts at their ceilings: got %v", got)
	}
	counts["services/watcher"]["long"] = 11
	if got, want := compareWithCeilings(t, file, []string{"long"}, counts), (exceeded{"services/watcher", "long", 11, 10}); !slices.Equal(got, []exceeded{want}) {
		t.Errorf("got %v, want %v", got, want)
	}
}
