package nearest

import (
	"slices"
	"strings"
	"testing"
)

func TestNamesReturnsThoseWithFewestMistakes(t *testing.T) {
	known := []string{"viewer", "editor", "view", "owner", "can_view", "can_edit"}
	for name, test := range map[string]struct {
		written string
		want    []string
	}{
		"a letter too many":      {"viewwer", []string{"viewer"}},
		"exchanged letters":      {"veiwer", []string{"viewer"}},
		"another case":           {"Viewer", []string{"viewer"}},
		"two at equal distance":  {"can_xxit", []string{"can_edit"}},
		"a short name":           {"vi", nil},
		"nothing near":           {"administrator", nil},
		"longer than any name":   {strings.Repeat("v", 200), nil},
		"the empty name":         {"", nil},
		"one letter is no guess": {"x", nil},
	} {
		if got := Names(test.written, known); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	if got, want := Names("ab1", []string{"ab4", "ab2", "ab5", "ab3"}), []string{"ab2", "ab3", "ab4"}; !slices.Equal(got, want) {
		t.Errorf("several: got %q, want %q", got, want)
	}
}

func TestHintSuggestsOrLists(t *testing.T) {
	for name, test := range map[string]struct {
		written string
		known   []string
		want    string
	}{
		"near":      {"usr", []string{"user", "document"}, "; did you mean user?"},
		"two near":  {"doc1", []string{"doc2", "doc3"}, "; did you mean doc2 or doc3?"},
		"none near": {"ship", []string{"user", "document"}, "; the types are document, user"},
		"more than eight": {
			"ship", strings.Fields("aaaaaaa1 bbbbbbb2 ccccccc3 ddddddd4 eeeeeee5 fffffff6 ggggggg7 kkkkkkk8 lllllll9"),
			"; the types are aaaaaaa1, bbbbbbb2, ccccccc3, ddddddd4, eeeeeee5, fffffff6, ggggggg7, kkkkkkk8, ...",
		},
		"nothing known": {"ship", nil, ""},
		"a name twice":  {"rol", []string{"role", "role"}, "; did you mean role?"},
	} {
		if got := Hint(test.written, "types", test.known); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestEditDistanceCountsMistakes(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"viewer", "viewer", 0}, {"veiwer", "viewer", 1}, {"abc", "cba", 2}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
	} {
		if got := editDistance(test.a, test.b); got != test.want {
			t.Errorf("%q, %q: got %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
