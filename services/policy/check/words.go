package check

import (
	"strings"

	"github.com/entail-dev/entail/services/policy/internal/words"
)

// quote returns a name as findings show it.
func quote(name string) string { return words.Quote(name) }

// mostWords bounds the names that a finding lists.
const mostWords = 5

// firstWords returns "a, b, c", cut off after mostWords.
func firstWords(words []string) string {
	if len(words) <= mostWords {
		return strings.Join(words, ", ")
	}
	return strings.Join(words[:mostWords], ", ") + " and more"
}
