package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// files returns files with these texts and the names p.yaml, q.yaml and so on.
func files(texts ...string) []syntax.File {
	all := make([]syntax.File, len(texts))
	for i, text := range texts {
		all[i] = syntax.File{Name: string(rune('p'+i)) + ".yaml", Content: []byte(text)}
	}
	return all
}

func testRefusals(t *testing.T, refusals map[string]invalidPolicy) {
	t.Helper()
	t.Parallel()
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := test.alone
			if text == "" {
				text = base + "---\n" + test.text
			}
			text, places := unmark(text)
			p, found := check.Files(files(text), syntax.ParseLimits{}, test.options)
			if got, want := summary(found), expectation(places, strings.Fields(test.want)); got != want {
				t.Errorf("found\n%swant\n%s\nin\n%s", detail(found), want, text)
			}
			if (p == nil) != found.HasErrors() {
				t.Errorf("there is a policy: %v, with\n%s", p != nil, detail(found))
			}
			for _, says := range test.says {
				if !strings.Contains(detail(found), says) {
					t.Errorf("nothing says %q in\n%s", says, detail(found))
				}
			}
			for _, d := range found {
				if d.Hint == "" || d.Message == "" {
					t.Errorf("%s lacks a message or a hint", d)
				}
			}
		})
	}
}

// unmark removes the marks of a text, and returns their places.
func unmark(text string) (string, []string) {
	var out strings.Builder
	var places []string
	line, column := 1, 1
	for _, r := range text {
		switch r {
		case '^':
			places = append(places, fmt.Sprintf("p.yaml:%d:%d", line, column))
			continue
		case '\n':
			line, column = line+1, 0
		}
		column++
		out.WriteRune(r)
	}
	return out.String(), places
}

// expectation combines codes and places. Codes in excess of the places have none, and come first.
func expectation(places, codes []string) string {
	var lines []string
	for i, code := range codes {
		if i < len(codes)-len(places) {
			lines = append(lines, code)
		} else {
			lines = append(lines, places[i-(len(codes)-len(places))]+" "+code)
		}
	}
	return strings.Join(lines, "\n")
}

// summary returns the place and code of each finding.
func summary(found policy.Diagnostics) string {
	var lines []string
	for _, d := range found {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s", d.Place, d.Code)))
	}
	return strings.Join(lines, "\n")
}

func detail(found policy.Diagnostics) string {
	var b strings.Builder
	for _, d := range found {
		fmt.Fprintln(&b, d, "| hint:", d.Hint, "| related:", d.Related)
	}
	return b.String()
}
