package tree

import (
	"iter"
	"strings"
)

// Part is the text of one document of a stream, and the line of the stream that it begins at.
type Part struct {
	Text string
	Line int
}

// Split yields the documents of a stream. YAML parts them at lines that begin with --- or ...
// whatever is around these, so a mistake in one document leaves the others readable.
func Split(text string) iter.Seq[Part] {
	return func(yield func(Part) bool) {
		// What is at hand began at begin, which is in line first; begun says that it is a document, not just what precedes one.
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

// isContent reports whether a line before the first mark is more than a comment or directive.
func isContent(line string) bool {
	text := strings.TrimLeft(line, " \t\r\n")
	return text != "" && text[0] != '#' && line[0] != '%'
}
