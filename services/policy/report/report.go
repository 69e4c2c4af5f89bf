// Package report writes the findings in a policy: as text for people, as JSON for programs, and as SARIF for tools that
// show findings beside the code.
package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// RenderText returns the findings for people. Below each finding it shows the line, if its file is given, the related places
// and the hint.
func RenderText(found policy.Diagnostics, files ...syntax.File) string {
	var b strings.Builder
	lines := map[string][]string{}
	for _, f := range files {
		lines[f.Name] = strings.Split(strings.TrimPrefix(string(f.Content), "\ufeff"), "\n")
	}
	for _, d := range found {
		fmt.Fprintf(&b, "%s\n", d)
		b.WriteString(lineExcerpt(lines[d.File], d.Place))
		for _, related := range d.Related {
			fmt.Fprintf(&b, "    %s: %s\n", related.Place, related.Message)
		}
		fmt.Fprintf(&b, "    hint: %s\n", d.Hint)
	}
	return b.String()
}

// maxExcerpt bounds the shown part of a line, in characters.
const maxExcerpt = 120

// lineExcerpt returns the line with a caret below the place; it is empty if the line does not exist.
func lineExcerpt(lines []string, at policy.Place) string {
	if at.Line < 1 || at.Line > len(lines) {
		return ""
	}
	line := []rune(strings.ToValidUTF8(strings.TrimSuffix(lines[at.Line-1], "\r"), "\ufffd"))
	if at.Column < 1 || at.Column > len(line) {
		return ""
	}
	from := max(0, at.Column-maxExcerpt/2)
	shown := line[from:min(len(line), from+maxExcerpt)]
	for i, r := range shown {
		if !unicode.IsPrint(r) {
			shown[i] = ' '
		}
	}
	return "    | " + string(shown) + "\n    | " + strings.Repeat(" ", at.Column-1-from) + "^\n"
}

// RenderJSON returns the findings as a JSON array.
func RenderJSON(found policy.Diagnostics) ([]byte, error) {
	if found == nil {
		found = policy.Diagnostics{}
	}
	return marshalIndented(found)
}

func marshalIndented(v any) ([]byte, error) {
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing findings: %w", err)
	}
	return append(out, '\n'), nil
}
