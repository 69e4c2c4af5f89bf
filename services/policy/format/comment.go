package format

import "strings"

// place is a line and a column of a text; both count from 1.
type place struct{ line, column int }

func (p place) before(o place) bool {
	return p.line < o.line || p.line == o.line && p.column < o.column
}

// comment is a comment with its place.
type comment struct {
	place

	text string
	// alone is true if the comment is the only content of its line.
	alone bool
	// closed is the place of the brackets that close right before the comment, inside the place of the open brackets
	// around it. Both are zero if there are none.
	closed, inside place
}

// scanner finds the comments of a document. YAML libraries move some comments and lose others.
type scanner struct {
	at       place
	comments []comment
	bare     strings.Builder
	// quote is the opening quote of the present text; 0 outside of quotes.
	quote byte
	// last is the last character of the line other than spaces. closed is as in a comment. open holds the places of
	// open brackets.
	last   byte
	spaced bool
	closed place
	open   []place
}

// scan returns the comments of a text, and the text without them.
func scan(text string) (bare string, comments []comment) {
	var s scanner
	for line := range strings.Lines(text) {
		s.at = place{s.at.line + 1, 0}
		s.last, s.spaced, s.closed = 0, true, place{}
		s.line(line)
	}
	return s.bare.String(), s.comments
}

func (s *scanner) line(line string) {
	content := strings.TrimRight(line, "\r\n")
	for i := range len(content) {
		s.at.column++
		if content[i] == '#' && s.quote == 0 && s.spaced {
			s.comment(content[i:])
			break
		}
		s.character(content, i)
		s.bare.WriteByte(content[i])
	}
	s.bare.WriteString(line[len(content):])
}

func (s *scanner) comment(text string) {
	c := comment{place: s.at, text: strings.TrimRight(text, " \t"), alone: s.last == 0, closed: s.closed}
	if len(s.open) > 0 {
		c.inside = s.open[len(s.open)-1]
	}
	s.comments = append(s.comments, c)
}

func (s *scanner) character(content string, i int) {
	c := content[i]
	switch {
	case s.quote == '"' && c == '\\':
		// The next character is escaped. In a pair of backslashes, the second one escapes nothing.
		s.quote = '\\'
	case s.quote == '\\':
		s.quote = '"'
	case s.quote != 0:
		if c == s.quote {
			s.quote = 0
		}
	case (c == '"' || c == '\'') && s.canBeginValue(content[:i]):
		s.quote = c
	case c == '[' || c == '{':
		s.open = append(s.open, s.at)
	case (c == ']' || c == '}') && len(s.open) > 0:
		s.closed = s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
	case c != ' ' && c != '\t' && c != ',':
		s.closed = place{}
	}
	if s.spaced = c == ' ' || c == '\t'; !s.spaced {
		s.last = c
	}
}

// canBeginValue reports whether a value may begin after this part of a line. Elsewhere, a quote is an ordinary character.
func (s *scanner) canBeginValue(before string) bool {
	before = strings.TrimRight(before, " \t")
	if before == "" || strings.ContainsRune("-:,[{?", rune(before[len(before)-1])) {
		return true
	}
	token := before[strings.LastIndexAny(before, " \t")+1:]
	return token[0] == '&' || token[0] == '!'
}
