package check

import (
	"strings"

	"github.com/entail-dev/entail/services/policy/internal/words"
)

// quoteName returns a name as findings show it.
func quoteName(name string) string { return words.QuoteName(name) }

// mostWords bounds the names that a finding lists.
const mostWords = 5

// joinFirstWords returns "a, b, c", cut off after mostWords.
func joinFirstWords(words []string) string {
	if len(words) <= mostWords {
		return strings.Join(words, ", ")
	}
	return strings.Join(words[:mostWords], ", ") + " and more"
}
