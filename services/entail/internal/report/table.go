package report

import (
	"bufio"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// Printer is the destination of tables and timelines.
type Printer struct {
	// Out keeps its first error and returns it from Flush.
	Out *bufio.Writer
	// Color enables colors for good and bad states.
	Color bool
	// Now is the present time, for relative times.
	Now time.Time
	// Zone is the time zone of times of day; nil means UTC.
	Zone *time.Location
}

// Headings of several tables.
const (
	headRole  = "ROLE"
	headState = "STATE"
	headWhy   = "WHY"
)

// Lines of a tree: before a child and before the last one, and before the children of each.
const (
	branch     = "├─ "
	lastBranch = "└─ "
	branchStem = "│  "
	blankStem  = "   "
)

// branchTexts returns the lines before child i of n, and before the children of that child.
func branchTexts(i, n int) (own, below string) {
	if i == n-1 {
		return lastBranch, blankStem
	}
	return branch, branchStem
}

// tableRow is one line of a table. ink colors only its last cell, so that the alignment stays correct.
type tableRow struct {
	cells []string
	ink   ansiColor
}

// ansiColor is an escape sequence for a color.
type ansiColor string

const (
	plain ansiColor = ""
	good  ansiColor = "\x1b[32m"
	wait  ansiColor = "\x1b[33m"
	bad   ansiColor = "\x1b[31m"
	dry   ansiColor = "\x1b[0m"
)

// writeTable writes rows under headings, aligned.
func (p Printer) writeTable(headings []string, rows []tableRow) {
	const gap = 3
	table := tabwriter.NewWriter(p.Out, 0, 0, gap, ' ', 0)
	for _, r := range append([]tableRow{{cells: headings}}, rows...) {
		cells := make([]string, len(r.cells))
		for i, cell := range r.cells {
			cells[i] = sanitizeText(cell)
		}
		if last := len(cells) - 1; p.Color && r.ink != plain {
			cells[last] = string(r.ink) + cells[last] + string(dry)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush()
}

// writeLinef writes one line of text.
func (p Printer) writeLinef(format string, args ...any) {
	fmt.Fprintln(p.Out, sanitizeText(fmt.Sprintf(format, args...)))
}

// sanitizeText replaces control characters, invisible ones and those that change the text direction. Text from elsewhere
// must not break lines, move the cursor or imitate other text.
func sanitizeText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, s)
}

// countText returns a number with its noun: "1 write", "2 writes".
func countText[N ~int | ~int32 | ~int64 | ~uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
