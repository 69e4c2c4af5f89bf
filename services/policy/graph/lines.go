package graph

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

const (
	// mostLines is how many actions or flows a drawing lists in one place: nobody reads more.
	mostLines = 12
	// mostInBrief is how many are listed where there is room for no more.
	mostInBrief = 2
	// mostLetters is how many a line has.
	mostLetters = 64
)

// lines returns a line for each item, and one that says how many are left out. In brief, many items are one line.
func lines[T fmt.Stringer](items []T, brief bool) []string {
	if brief && len(items) > mostInBrief {
		return []string{fmt.Sprintf("%d actions", len(items))}
	}
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

// lines are those of the label of an edge in a drawing, below its relation.
func (e *Edge) lines(brief bool) []string {
	var all []string
	if e.To[0].Union {
		all = append(all, "→ "+e.To[0].Name)
	}
	return append(all, lines(e.Flows, brief)...)
}

// kind is the line below the name of a node: who provides a type, or what it is else; empty if there is nothing to say.
func (n *Node) kind() string {
	switch {
	case n.Union:
		return "union"
	case n.Types > 0:
		return fmt.Sprintf("types: %d", n.Types)
	default:
		return n.Owner
	}
}

// hint is the choice of a filter that shows more of a node; empty for a union.
func (n *Node) hint() string {
	switch {
	case n.Union:
		return ""
	case n.Types > 0:
		return fmt.Sprintf("--owners '^%s$'", regexp.QuoteMeta(n.Name))
	default:
		return "--focus " + n.Name
	}
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
