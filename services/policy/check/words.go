package check

import (
	"strings"

	"github.com/entail-dev/entail/services/policy/internal/words"
)

// quote returns a name as findings show it.
func quote(name string) string { return words.Quote(name) }

// mostWords is how many of a kind a finding shows.
const mostWords = 5

// some is "a, b, c", cut off where there are too many.
func some(words []string) string {
	if len(words) <= mostWords {
		return strings.Join(words, ", ")
	}
	return strings.Join(words[:mostWords], ", ") + " and more"
}
