// Package report writes what was found in a policy: for people, for programs, and in SARIF for
// what shows findings beside the code they are about.
package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// Text is one finding a line, with what to do and other places below it, and the line that it is about
// if its file is given.
func Text(found policy.Diagnostics, files ...syntax.File) string {
	var b strings.Builder
	lines := map[string][]string{}
	for _, f := range files {
		lines[f.Name] = strings.Split(strings.TrimPrefix(string(f.Content), "\ufeff"), "\n")
	}
	for _, d := range found {
		fmt.Fprintf(&b, "%s\n", d)
		b.WriteString(excerpt(lines[d.File], d.Place))
		for _, related := range d.Related {
			fmt.Fprintf(&b, "    %s: %s\n", related.Place, related.Message)
		}
		fmt.Fprintf(&b, "    hint: %s\n", d.Hint)
	}
	return b.String()
}

// maxExcerpt is how much of a line is shown, in characters.
const maxExcerpt = 120

// excerpt is a line with a caret below the place in it; empty if there is no such line.
func excerpt(lines []string, at policy.Place) string {
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

// JSON is an array of findings.
func JSON(found policy.Diagnostics) ([]byte, error) {
	if found == nil {
		found = policy.Diagnostics{}
	}
	return marshal(found)
}

func marshal(v any) ([]byte, error) {
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing findings: %w", err)
	}
	return append(out, '\n'), nil
}
