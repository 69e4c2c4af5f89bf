package report

import (
	"bufio"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// Page is where tables and timelines are written.
type Page struct {
	// Out remembers its first error, which whoever flushes it is told.
	Out *bufio.Writer
	// Color marks what went well and what did not.
	Color bool
	// Now is what "ago" counts from.
	Now time.Time
	// Zone of the times of day; nil means UTC.
	Zone *time.Location
}

// Headings of several tables.
const (
	headRole  = "ROLE"
	headState = "STATE"
)

// row is one line of a table; ink colors its last cell, where it cannot disturb the alignment.
type row struct {
	cells []string
	ink   ink
}

// ink is a color by its meaning.
type ink string

const (
	plain ink = ""
	good  ink = "\x1b[32m"
	wait  ink = "\x1b[33m"
	bad   ink = "\x1b[31m"
	dry   ink = "\x1b[0m"
)

// table writes rows under headings, aligned.
func (p Page) table(headings []string, rows []row) {
	const gap = 3
	table := tabwriter.NewWriter(p.Out, 0, 0, gap, ' ', 0)
	for _, r := range append([]row{{cells: headings}}, rows...) {
		cells := make([]string, len(r.cells))
		for i, cell := range r.cells {
			cells[i] = harmless(cell)
		}
		if last := len(cells) - 1; p.Color && r.ink != plain {
			cells[last] = string(r.ink) + cells[last] + string(dry)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush()
}

// linef writes one line of text.
func (p Page) linef(format string, args ...any) {
	fmt.Fprintln(p.Out, harmless(fmt.Sprintf(format, args...)))
}

// harmless replaces every control character, and all that is not seen or turns round what is: a text from elsewhere must not
// break lines, move the cursor or look like another.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, s)
}

// count is "1 write", "2 writes".
func count[N ~int | ~int32 | ~int64 | ~uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
