// Package nearest finds the names that were probably meant by a mistyped one.
package nearest

import (
	"slices"
	"strings"
)

const (
	// maxNames bounds the names that a hint suggests.
	maxNames = 3
	// maxListed bounds the names that a hint lists if none is near.
	maxListed = 8
	// maxLength bounds the names that are compared, in bytes.
	maxLength = 128
)

// Hint returns a clause for the end of an error about an unknown name: "; did you mean a or b?". If no name is near, it
// lists some of the existing names, which are of the given kind: "; the types are a, b". The caller may see all of
// them.
func Hint(name, kind string, existing []string) string {
	if near := Names(name, existing); len(near) > 0 || len(existing) == 0 {
		return Suggest(near)
	}
	listed := slices.Compact(slices.Sorted(slices.Values(existing)))
	if len(listed) > maxListed {
		listed = append(listed[:maxListed], "...")
	}
	return "; the " + kind + " are " + strings.Join(listed, ", ")
}

// Suggest returns the clause "; did you mean a or b?", or "" without names.
func Suggest(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// Names returns up to three existing names with the fewest typing mistakes, if these are few. Upper and lower case make
// no difference.
func Names(name string, existing []string) []string {
	best, near := min(len(name)/2, 3)+1, []string(nil)
	if len(name) > maxLength {
		return nil
	}
	for _, k := range slices.Compact(slices.Sorted(slices.Values(existing))) {
		if max(len(k)-len(name), len(name)-len(k)) > best {
			continue
		}
		switch d := editDistance(strings.ToLower(name), strings.ToLower(k)); {
		case d < best:
			best, near = d, []string{k}
		case d == best && len(near) > 0 && len(near) < maxNames:
			near = append(near, k)
		}
	}
	return near
}

// editDistance returns the number of bytes to add, remove, replace or exchange with their neighbor to turn a into b.
func editDistance(a, b string) int {
	// Rows of the table of distances between prefixes: of a[:i-1], a[:i] and a[:i+1].
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			replaced := row[j]
			if a[i] != b[j] {
				replaced++
			}
			next[j+1] = min(replaced, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
