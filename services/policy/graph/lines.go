package graph

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

const (
	// mostLines bounds the actions or flows that a drawing lists in one place.
	mostLines = 12
	// mostInBrief is the bound of a brief drawing, which counts longer lists.
	mostInBrief = 2
	// mostLetters bounds a line, in characters.
	mostLetters = 64
)

// listLines returns a line for each item, and the number of omitted items. A brief list of many items is one line.
func listLines[T fmt.Stringer](items []T, brief bool) []string {
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

// labelLines returns the lines of the edge's label below the relation.
func (e *Edge) labelLines(brief bool) []string {
	var all []string
	if e.To[0].Union {
		all = append(all, "→ "+e.To[0].Name)
	}
	return append(all, listLines(e.Flows, brief)...)
}

// subtitle returns the line below the name of a node: the owner of a type, or the sort of the node. It may be empty.
func (n *Node) subtitle() string {
	switch {
	case n.Union:
		return "union"
	case n.Types > 0:
		return fmt.Sprintf("types: %d", n.Types)
	default:
		return n.Owner
	}
}

// expandFlag returns the filter that shows more of a node; it is empty for a union.
func (n *Node) expandFlag() string {
	switch {
	case n.Union:
		return ""
	case n.Types > 0:
		return fmt.Sprintf("--owners '^%s$'", regexp.QuoteMeta(n.Name))
	default:
		return "--focus " + n.Name
	}
}

// String returns the action after a full dot if role bindings can give it, or else after an empty dot.
func (a Action) String() string {
	if a.ByRole {
		return "● " + a.Name
	}
	return "○ " + a.Name
}

// printableText cuts long texts, and replaces characters that cannot be printed.
func printableText(s string) string {
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
