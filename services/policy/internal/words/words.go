// Package words puts names into the sentences of findings and errors.
package words

import (
	"fmt"
	"strings"
)

// Quote returns a name in quotes, cut off where it is long: somebody may have written anything there.
func Quote(name string) string { return fmt.Sprintf("%.64q", name) }

// List is "a, b and c", with the conjunction between the last two.
func List(words []string, conjunction string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + conjunction + " " + words[last]
}

// Some is "a, b, c", or so many of the words "and 5 more".
func Some(words []string, most int) string {
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
}

// Distance is how many letters have to be added, removed or replaced to make b of a.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
