package check

import (
	"strings"

	"github.com/entail-dev/entail/services/policy/internal/words"
)

// quoteName returns a name as findings show it.
func quoteName(name string) string { return words.QuoteName(name) }

// maxWords bounds the names that a finding lists.
const maxWords = 5

// joinFirstWords returns "a, b, c", cut off after maxWords.
func joinFirstWords(words []string) string {
	if len(words) <= maxWords {
		return strings.Join(words, ", ")
	}
	return strings.Join(words[:maxWords], ", ") + " and more"
}
