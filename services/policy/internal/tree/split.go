package tree

import (
	"iter"
	"strings"
)

// RawDocument is the text of one document of a stream, with its first line.
type RawDocument struct {
	Text string
	Line int
}

// SplitDocuments yields the documents of a stream. YAML separates them at lines that begin with --- or ..., whatever is around
// them. So a mistake in one document leaves the others readable.
func SplitDocuments(text string) iter.Seq[RawDocument] {
	return func(yield func(RawDocument) bool) {
		// The present part begins at begin, in line first. begun is true if it is a document, and not only comments
		// before one.
		begin, first, begun := 0, 1, false
		at, line := 0, 1
		for content := range strings.Lines(text) {
			start, end := isDocumentMark(content, "---"), isDocumentMark(content, "...")
			if (start || end) && begun && !yield(RawDocument{text[begin:at], first}) {
				return
			}
			switch {
			case start && begun:
				begin, first = at, line
			case end:
				begin, first, begun = at+len(content), line+1, false
			default:
				begun = begun || start || isContentLine(content)
			}
			at, line = at+len(content), line+1
		}
		if begun {
			yield(RawDocument{text[begin:], first})
		}
	}
}

func isDocumentMark(line, mark string) bool {
	rest, found := strings.CutPrefix(line, mark)
	return found && (rest == "" || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// isContentLine reports whether a line before the first marker is more than a comment or directive.
func isContentLine(line string) bool {
	text := strings.TrimLeft(line, " \t\r\n")
	return text != "" && text[0] != '#' && line[0] != '%'
}
