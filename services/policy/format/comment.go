package format

import "strings"

// textPlace is a line and a column of a text; both count from 1.
type textPlace struct{ line, column int }

func (p textPlace) isBefore(o textPlace) bool {
	return p.line < o.line || p.line == o.line && p.column < o.column
}

// placedComment is a comment with its place.
type placedComment struct {
	textPlace

	text string
	// alone is true if the comment is the only content of its line.
	alone bool
	// closed is the place of the brackets that close right before the comment, inside the place of the open brackets
	// around it. Both are zero if there are none.
	closed, inside textPlace
}

// commentScanner finds the comments of a document. YAML libraries move some comments and lose others.
type commentScanner struct {
	at       textPlace
	comments []placedComment
	bare     strings.Builder
	// quote is the opening quote of the present text; 0 outside of quotes.
	quote byte
	// last is the last character of the line other than spaces. closed is as in a comment. open holds the places of
	// open brackets.
	last   byte
	spaced bool
	closed textPlace
	open   []textPlace
}

// scanComments returns the comments of a text, and the text without them.
func scanComments(text string) (bare string, comments []placedComment) {
	var s commentScanner
	for line := range strings.Lines(text) {
		s.at = textPlace{s.at.line + 1, 0}
		s.last, s.spaced, s.closed = 0, true, textPlace{}
		s.scanLine(line)
	}
	return s.bare.String(), s.comments
}

func (s *commentScanner) scanLine(line string) {
	content := strings.TrimRight(line, "\r\n")
	for i := range len(content) {
		s.at.column++
		if content[i] == '#' && s.quote == 0 && s.spaced {
			s.addComment(content[i:])
			break
		}
		s.scanCharacter(content, i)
		s.bare.WriteByte(content[i])
	}
	s.bare.WriteString(line[len(content):])
}

func (s *commentScanner) addComment(text string) {
	c := placedComment{textPlace: s.at, text: strings.TrimRight(text, " \t"), alone: s.last == 0, closed: s.closed}
	if len(s.open) > 0 {
		c.inside = s.open[len(s.open)-1]
	}
	s.comments = append(s.comments, c)
}

func (s *commentScanner) scanCharacter(content string, i int) {
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
		s.closed = textPlace{}
	}
	if s.spaced = c == ' ' || c == '\t'; !s.spaced {
		s.last = c
	}
}

// canBeginValue reports whether a value may begin after this part of a line. Elsewhere, a quote is an ordinary character.
func (s *commentScanner) canBeginValue(before string) bool {
	before = strings.TrimRight(before, " \t")
	if before == "" || strings.ContainsRune("-:,[{?", rune(before[len(before)-1])) {
		return true
	}
	token := before[strings.LastIndexAny(before, " \t")+1:]
	return token[0] == '&' || token[0] == '!'
}
