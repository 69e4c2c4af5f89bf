package archtest

import (
	"path/filepath"
	"strings"
	"testing"
)

// A tree may have only the lines that its budget allows. To raise a budget, edit testdata/lines.txt, with the reason
// in the commit. Lines include comments and empty lines, and are rounded up to 100.
func TestPackageTreesStayWithinLineBudgets(t *testing.T) {
	counts := map[string]map[string]int{}
	for _, tree := range trees() {
		counts[tree] = map[string]int{"lines": roundedLines(productFiles(t, filepath.Join(root, "..", tree)))}
	}
	for _, broken := range compareWithCeilings(t, "testdata/lines.txt", []string{"lines"}, counts) {
		t.Error(broken)
	}
}

// roundedLines returns the number of lines in all files, rounded up to 100.
func roundedLines(files []productFile) int {
	lines := 0
	for _, file := range files {
		lines += strings.Count(file.text, "\n")
	}
	return (lines + 99) / 100 * 100
}

func TestLineBudgetIsRoundedUp(t *testing.T) {
	for lines, want := range map[int]int{0: 0, 1: 100, 100: 100, 101: 200} {
		if got := roundedLines([]productFile{{"x.go", strings.Repeat("\n", lines)}}); got != want {
			t.Errorf("%d lines: got %d, want %d", lines, got, want)
		}
	}
}
