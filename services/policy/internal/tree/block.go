package tree

import (
	"slices"
	"strings"
)

const (
	// maxKey bounds the keys that the scanner accepts. It is far below YAML's limit.
	maxKey = 128
	// arenaNodes is the number of nodes that are allocated at once; a small text allocates fewer.
	arenaNodes   = 4096
	bytesPerNode = 4
)

// blockScanner reads block mappings and sequences of plain words. Its methods return false to decline.
type blockScanner struct {
	text   string
	budget *ParseBudget
	nodes  int
	depth  int
	// limit is set if the document exceeds a limit, not if it exceeds the scanner's part of YAML.
	limit *ParseError

	// line is the number of the present line, start its beginning, next the beginning of the next line.
	line        int32
	start, next int
	// at is the position of the unread content. indent counts the columns before it, and is -1 after the last line.
	at, indent int
	// open holds the children of unfinished nodes; arena has room for the children of finished ones.
	open, arena []Node
}

func (b *blockScanner) readDocument() (Node, bool) {
	b.advanceLine()
	if b.indent == 0 && strings.HasPrefix(b.text[b.at:b.next], "---") {
		b.at += len("---")
		if !b.skipBlank() {
			return Node{}, false
		}
		b.advanceLine()
	}
	if b.indent < 0 {
		return Node{}, true
	}
	root, ok := b.readCollection(b.indent)
	return root, ok && b.indent < 0
}

// advanceLine moves to the next line with content.
func (b *blockScanner) advanceLine() {
	for b.next < len(b.text) {
		b.line++
		b.start, b.at = b.next, b.next
		if length := strings.IndexByte(b.text[b.start:], '\n'); length >= 0 {
			b.next += length + 1
		} else {
			b.next = len(b.text)
		}
		if !b.skipBlank() {
			b.indent = b.at - b.start
			return
		}
	}
	b.indent = -1
}

// skipBlank skips spaces, and reports whether the rest of the line is empty or a comment.
func (b *blockScanner) skipBlank() bool {
	from := b.at
	for b.at < b.next && b.text[b.at] == ' ' {
		b.at++
	}
	switch rest := b.text[b.at:b.next]; {
	case rest == "", rest == "\n", rest == "\r\n":
		return true
	case rest[0] == '#':
		return (b.at > from || b.at == b.start) && isPrintable(strings.TrimSuffix(strings.TrimSuffix(rest, "\n"), "\r"))
	default:
		return false
	}
}

// readCollection reads the sequence or mapping that begins at the present position. All its entries have the same indent.
func (b *blockScanner) readCollection(indent int) (Node, bool) {
	n := Node{Line: b.line, Column: b.currentColumn(), Kind: Mapping}
	if b.isAtSequenceItem() {
		n.Kind = Sequence
	}
	if b.depth == b.budget.Depth {
		b.limit = tooDeepError(n.Line, n.Column, b.depth)
		return n, false
	}
	b.depth++
	mark, ok := len(b.open), true
	for ok && b.indent == indent && b.isAtSequenceItem() == (n.Kind == Sequence) {
		if n.Kind == Sequence {
			ok = b.readItem(indent)
		} else {
			ok = b.readEntry(indent)
		}
	}
	if !ok || b.indent > indent {
		return n, false
	}
	b.depth--
	n.Children = b.moveToArena(mark)
	return n, true
}

func (b *blockScanner) readItem(indent int) bool {
	b.at++
	if nothing := b.nullNode(); b.skipBlank() {
		b.advanceLine()
		return b.readIndented(indent+1, nothing)
	}
	if b.isAtSequenceItem() || b.keyLength() > 0 {
		b.indent = b.at - b.start
		n, ok := b.readCollection(b.indent)
		return ok && b.pushNode(n)
	}
	return b.readScalar()
}

func (b *blockScanner) readEntry(indent int) bool {
	length := b.keyLength()
	if length == 0 || !b.pushNode(Node{Text: b.text[b.at : b.at+length], Line: b.line, Column: b.currentColumn(), Kind: Scalar}) {
		return false
	}
	b.at += length + 1
	nothing := b.nullNode()
	if !b.skipBlank() {
		return b.readScalar()
	}
	b.advanceLine()
	if b.indent == indent && b.isAtSequenceItem() {
		return b.readIndented(indent, nothing)
	}
	return b.readIndented(indent+1, nothing)
}

// readIndented reads a collection that is indented at least as far as indent. If there is none, the value is nothing.
func (b *blockScanner) readIndented(indent int, nothing Node) bool {
	if b.indent < indent {
		return b.pushNode(nothing)
	}
	n, ok := b.readCollection(b.indent)
	return ok && b.pushNode(n)
}

// readScalar reads a value that ends with its line.
func (b *blockScanner) readScalar() bool {
	n := Node{Line: b.line, Column: b.currentColumn(), Kind: Scalar}
	rest := b.text[b.at:b.next]
	switch {
	case strings.HasPrefix(rest, "{}"):
		n.Kind = Mapping
		b.at += 2
	case strings.HasPrefix(rest, "[]"):
		n.Kind = Sequence
		b.at += 2
	case rest[0] == '"' || rest[0] == '\'':
		length := strings.IndexByte(rest[1:], rest[0])
		if length < 0 || strings.IndexByte(rest[:length+1], '\\') >= 0 || !isPrintable(rest[:length+1]) {
			return false
		}
		n.Text = rest[1 : length+1]
		b.at += length + 2
	default:
		n.Plain = true
		if n.Text = rest[:wordLength(rest)]; isNull(n.Text) {
			n.Kind, n.Text = Null, ""
		}
		b.at += wordLength(rest)
	}
	if b.at == b.start+int(n.Column)-1 || !b.skipBlank() {
		return false
	}
	b.advanceLine()
	return b.pushNode(n)
}

// isAtSequenceItem reports whether the present line begins an item of a sequence.
func (b *blockScanner) isAtSequenceItem() bool {
	return b.text[b.at] == '-' && (b.at+1 == b.next || strings.IndexByte(" \r\n", b.text[b.at+1]) >= 0)
}

// keyLength returns the length of the key at the present position, or 0.
func (b *blockScanner) keyLength() int {
	rest := b.text[b.at:b.next]
	length := wordLength(rest)
	if length > maxKey || length == len(rest) || rest[length] != ':' {
		return 0
	}
	if length+1 < len(rest) && strings.IndexByte(" \r\n", rest[length+1]) < 0 {
		return 0
	}
	return length
}

func (b *blockScanner) currentColumn() int32 { return int32(b.at-b.start) + 1 }

func (b *blockScanner) nullNode() Node { return Node{Line: b.line, Column: b.currentColumn()} }

func (b *blockScanner) pushNode(n Node) bool {
	if b.nodes == 0 {
		b.limit = tooManyError(n.Line, n.Column)
		return false
	}
	b.nodes--
	if len(b.open) == cap(b.open) {
		// For a list of millions of items, append would copy five times the list in total; this copies twice.
		b.open = slices.Grow(b.open, len(b.open)+1)
	}
	b.open = append(b.open, n)
	return true
}

// moveToArena moves the open nodes from mark on to the arena.
func (b *blockScanner) moveToArena(mark int) []Node {
	open := b.open[mark:]
	if len(open) > cap(b.arena)-len(b.arena) {
		b.arena = make([]Node, 0, max(len(open), min(arenaNodes, len(b.text)/bytesPerNode)))
	}
	from := len(b.arena)
	b.arena = append(b.arena, open...)
	b.open = b.open[:mark]
	return b.arena[from:len(b.arena):len(b.arena)]
}

// wordLength returns the length of the word at the start of s: letters, digits and _, and after the first character also . /
// and -.
func wordLength(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
		case i > 0 && (c == '-' || c == '.' || c == '/'):
		default:
			return i
		}
	}
	return len(s)
}

func isNull(s string) bool { return s == "null" || s == "Null" || s == "NULL" }

func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] != '\t' && (s[i] < ' ' || s[i] > '~') {
			return false
		}
	}
	return true
}
