package check

import (
	"fmt"
	"strings"
)

// quote returns a name as findings show it, whatever somebody wrote there.
func quote(name string) string { return fmt.Sprintf("%.64q", name) }

// mostWords is how many of a kind a finding shows.
const mostWords = 5

// some is "a, b, c", cut off where there are too many.
func some(words []string) string {
	if len(words) <= mostWords {
		return strings.Join(words, ", ")
	}
	return strings.Join(words[:mostWords], ", ") + " and more"
}
