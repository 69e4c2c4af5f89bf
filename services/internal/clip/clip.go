// Package clip bounds texts that come from elsewhere, before they go into statuses, Events,
// headers and results.
package clip

import (
	"strings"
	"unicode"
)

const mark = "…"

// Text is s in at most size bytes of valid UTF-8. Where something was cut off it ends with "…".
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

// Line is s as [Text] on one line, for what takes no line breaks.
func Line(s string, size int) string {
	return Text(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s), size)
}
