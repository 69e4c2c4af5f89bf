// Package words formats names for the sentences of findings and errors.
package words

import (
	"fmt"
	"strings"
)

// QuoteName returns a name in quotes. It cuts long names, because a name in a document may be any text.
func QuoteName(name string) string { return fmt.Sprintf("%.64q", name) }

// JoinWords returns "a, b and c", with the given conjunction before the last word.
func JoinWords(words []string, conjunction string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + conjunction + " " + words[last]
}

// ListSome returns "a, b, c", or the first words "and 5 more".
func ListSome(words []string, most int) string {
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
}

// EditDistance returns the number of bytes to add, remove or replace to turn a into b.
func EditDistance(a, b string) int {
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
