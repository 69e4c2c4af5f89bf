package truncate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/entail-dev/entail/services/internal/truncate"
)

func TestTextTruncatesAtRune(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		size int
		want string
	}{
		"short enough":              {"größe", 7, "größe"},
		"cut":                       {"abcdefgh", 6, "abc…"},
		"within a character":        {"abäöü", 6, "ab…"},
		"of many":                   {"012345üüüüü", 10, "012345…"},
		"no room":                   {"abcdef", 2, ""},
		"room for the mark alone":   {"abcdef", 3, "…"},
		"what is no text":           {"a\xffb", 10, "ab"},
		"nothing":                   {"", 0, ""},
		"no text that is also long": {"\xff\xffabcdefgh", 6, "abc…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := truncate.Text(c.text, c.size); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLineRemovesBreaks(t *testing.T) {
	if got := truncate.Line("a\nb\r\tc\x00", 100); got != "a b  c " {
		t.Errorf("got %q", got)
	}
}

func FuzzText(f *testing.F) {
	f.Add("abäöü", 4)
	f.Add("\xff", -1)
	f.Fuzz(func(t *testing.T, s string, size int) {
		got := truncate.Text(s, size)
		if len(got) > max(size, 0) || !utf8.ValidString(got) || !strings.HasPrefix(strings.ToValidUTF8(s, ""), strings.TrimSuffix(got, "…")) {
			t.Errorf("%q in %d bytes is %q", s, size, got)
		}
	})
}
