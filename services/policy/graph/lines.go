package graph

import (
	"fmt"
	"strings"
	"unicode"
)

const (
	// mostLines is how many actions or flows a drawing lists in one place: nobody reads more.
	mostLines = 12
	// mostLetters is how many a line has.
	mostLetters = 64
)

// lines returns a line for each item, and one that says how many are left out.
func lines[T fmt.Stringer](items []T) []string {
	shown := items
	if len(items) > mostLines {
		shown = items[:mostLines-1]
	}
	all := make([]string, 0, len(shown)+1)
	for _, item := range shown {
		all = append(all, item.String())
	}
	if more := len(items) - len(shown); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return all
}

// String is the action with a full dot before it if role bindings can give it, else with an empty one.
func (a Action) String() string {
	if a.ByRole {
		return "● " + a.Name
	}
	return "○ " + a.Name
}

// printable cuts off what is too long, and replaces what no drawing can show.
func printable(s string) string {
	letters := 0
	for i := range s {
		if letters++; letters == mostLetters && len(s[i:]) > len("…") {
			s = s[:i] + "…"
			break
		}
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
