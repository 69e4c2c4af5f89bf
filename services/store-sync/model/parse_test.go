package model

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMessagesHaveSourcePositions(t *testing.T) {
	const source = `# a licence

module m

type doc
  relations
    # who reads
    define reader: [user]

	extend   type account # ours
  relations
	  define   reader : [user]
    define readers: [user]

condition now (at: timestamp) {
  at < at
}
`
	for n, want := range map[definitionName]sourcePosition{
		{typ: "doc"}:                     {5, 6},
		{typ: "doc", rel: "reader"}:      {8, 12},
		{typ: "account"}:                 {10, 16},
		{typ: "account", rel: "reader"}:  {12, 13},
		{typ: "account", rel: "readers"}: {13, 12},
		{cond: "now"}:                    {15, 11},
		{typ: "nothing"}:                 {},
		{typ: "doc", rel: "readers"}:     {},
		{cond: "reader"}:                 {},
	} {
		for ending, text := range map[string]string{
			"unix": source, "windows": strings.ReplaceAll(source, "\n", "\r\n"), "old": strings.ReplaceAll(source, "\n", "\r"),
		} {
			if got := normalizeText(text).positionOfDefinition(n); got != want {
				t.Errorf("with %s line ends %s is at %v, want %v", ending, n, got, want)
			}
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	var all problemMessages
	for range 100 {
		all.addProblem(strings.Repeat("ü", maxProblemBytes) + "\n\xff")
	}
	got := all.String()
	if len(got) > maxProblems*(maxProblemBytes+10)+20 || !utf8.ValidString(got) || strings.Contains(got, "\n") || !strings.HasSuffix(got, "; and 97 more") {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
	if got := oneLine(" two\n\twords \xff"); got != "two words ?" {
		t.Errorf("got %q", got)
	}
}

func TestNormalizeTextDropsComments(t *testing.T) {
	const want = "module m\ntype x\n  relations\n    define p: [x#p]\n"
	for name, source := range map[string]string{
		"as it is":         want,
		"no last line end": strings.TrimSuffix(want, "\n"),
		"comments":         "# one\nmodule m # two\n  # three\ntype x\n  relations\n    define p: [x#p] #four\n",
		"space":            "\n\nmodule m  \n\t\ntype x\t\n\n  relations\n    define p: [x#p]\n\n\n",
		"windows":          strings.ReplaceAll(want, "\n", "\r\n"),
	} {
		if got := normalizeText(source).String(); got != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
