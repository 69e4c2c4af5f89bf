// Package truncate bounds texts from outside before they are stored in statuses, Events, headers and results.
package truncate

import (
	"strings"
	"unicode"
)

const mark = "…"

// Text returns s in at most size bytes of valid UTF-8. A shortened text ends with "…".
func Text(s string, size int) string {
	s = strings.ToValidUTF8(s, "")
	switch {
	case len(s) <= size:
		return s
	case size < len(mark):
		return ""
	}
	return strings.ToValidUTF8(s[:size-len(mark)], "") + mark
}

// Line returns the result of [Text] on one line.
func Line(s string, size int) string {
	return Text(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s), size)
}
