package tree

import (
	"iter"
	"strings"
)

// Part is the text of one document of a stream, with its first line.
type Part struct {
	Text string
	Line int
}

// Split yields the documents of a stream. YAML separates them at lines that begin with --- or ..., whatever is around
// them. So a mistake in one document leaves the others readable.
func Split(text string) iter.Seq[Part] {
	return func(yield func(Part) bool) {
		// The present part begins at begin, in line first. begun is true if it is a document, and not only comments
		// before one.
		begin, first, begun := 0, 1, false
		at, line := 0, 1
		for content := range strings.Lines(text) {
			start, end := isMark(content, "---"), isMark(content, "...")
			if (start || end) && begun && !yield(Part{text[begin:at], first}) {
				return
			}
			switch {
			case start && begun:
				begin, first = at, line
			case end:
				begin, first, begun = at+len(content), line+1, false
			default:
				begun = begun || start || isContent(content)
			}
			at, line = at+len(content), line+1
		}
		if begun {
			yield(Part{text[begin:], first})
		}
	}
}

func isMark(line, mark string) bool {
	rest, found := strings.CutPrefix(line, mark)
	return found && (rest == "" || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// isContent reports whether a line before the first marker is more than a comment or directive.
func isContent(line string) bool {
	text := strings.TrimLeft(line, " \t\r\n")
	return text != "" && text[0] != '#' && line[0] != '%'
}
