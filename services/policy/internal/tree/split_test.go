package tree

import (
	"fmt"
	"slices"
	"testing"
)

func TestSplitDocumentsAtMarkers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                               nil,
		"\n# c\n":                        nil,
		"a":                              {"1 a"},
		"a\n---\nb\n":                    {"1 a\n", "2 ---\nb\n"},
		"# c\n---\na\n":                  {"1 # c\n---\na\n"},
		"%YAML 1.2\n---\na\n":            {"1 %YAML 1.2\n---\na\n"},
		"---\n---\n":                     {"1 ---\n", "2 ---\n"},
		"a\n...\n# c\n...\n%X\n---\nb":   {"1 a\n", "5 %X\n---\nb"},
		"a\n--- b\n---c\n ---\n---\td":   {"1 a\n", "2 --- b\n---c\n ---\n", "5 ---\td"},
		"a\r\n---\r\nb\r\n...\r\n":       {"1 a\r\n", "2 ---\r\nb\r\n"},
		"a: '\n---\n'\n":                 {"1 a: '\n", "2 ---\n'\n"},
		"...\n...\na\n... # end\nb\n...": {"3 a\n", "5 b\n"},
	} {
		var got []string
		for part := range SplitDocuments(text) {
			got = append(got, fmt.Sprintf("%d %s", part.Line, part.Text))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is parted into %q, want %q", text, got, want)
		}
	}
}
