package words_test

import (
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy/internal/words"
)

func TestJoinWordsAndListSome(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][2]string{
		"": {"", ""}, "a": {"a", "a"}, "a b": {"a or b", "a, b"}, "a b c": {"a, b or c", "a, b and 1 more"}, "a b c d": {"a, b, c or d", "a, b and 2 more"},
	} {
		got := [2]string{words.JoinWords(strings.Fields(list), "or"), words.ListSome(strings.Fields(list), 2)}
		if got != want {
			t.Errorf("%q is %q, want %q", list, got, want)
		}
	}
	if got := words.QuoteName("é\n" + strings.Repeat("x", 100)); got != `"é\n`+strings.Repeat("x", 62)+`"` {
		t.Errorf("got %s", got)
	}
}

func TestEditDistance(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"a", ""}: 1, {"", "ab"}: 2, {"same", "same"}: 0, {"kitten", "sitting"}: 3, {"ab", "ba"}: 2, {"abc", "ac"}: 1,
	} {
		if there, back := words.EditDistance(pair[0], pair[1]), words.EditDistance(pair[1], pair[0]); there != want || back != want {
			t.Errorf("%q: %d and back %d, want %d", pair, there, back, want)
		}
	}
}
