package tree

import "fmt"

// NodeKind is the kind of a node.
type NodeKind uint8

// Kinds of node.
const (
	Null NodeKind = iota
	Scalar
	Sequence
	Mapping
)

// String returns a description for people.
func (k NodeKind) String() string {
	switch k {
	case Null:
		return "nothing"
	case Scalar:
		return "a text"
	case Sequence:
		return "a list"
	case Mapping:
		return "a mapping"
	default:
		return fmt.Sprintf("kind %d", uint8(k))
	}
}

// Node is a value with the place of its beginning. Aliases and merge keys are resolved.
type Node struct {
	// Text is the text of a scalar.
	Text string
	// Children holds the items of a sequence, or the keys and values of a mapping in turn.
	Children []Node
	// Line and Column count from 1.
	Line, Column int32
	Kind         NodeKind
	// Plain is true for a scalar without quotes.
	Plain bool
}

// ParseBudget bounds the cost of documents. Reading a document reduces it.
type ParseBudget struct {
	// Depth bounds the nesting of values; it is not reduced.
	Depth int
	// Nodes is the remaining number of nodes. An alias counts each time that it is used.
	Nodes int
	// LibraryBytes is the remaining number of bytes for the YAML library.
	LibraryBytes int
}

// ParseError is the reason why a document cannot be read, with its place.
type ParseError struct {
	Line, Column  int32
	Message, Hint string
	// Limit is true if the document exceeds a limit, rather than being wrong.
	Limit bool
}

// Error implements error.
func (e *ParseError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

func tooDeepError(line, column int32, depth int) *ParseError {
	return &ParseError{
		Line: line, Column: column, Limit: true,
		Message: fmt.Sprintf("values nest deeper than %d levels", depth),
		Hint:    "a policy needs 8: look for indentation or brackets that went wrong",
	}
}

func tooManyError(line, column int32) *ParseError {
	return &ParseError{
		Line: line, Column: column, Limit: true,
		Message: "there are too many values, counting aliases as often as they are used",
		Hint:    "split the policy, or use fewer aliases",
	}
}

// ParseDocument reads one document that begins at a line of its file. An empty document has kind Null. Errors have type *Error.
func ParseDocument(text string, line int, budget *ParseBudget) (Node, error) {
	b := blockScanner{text: text, line: int32(line) - 1, budget: budget, nodes: budget.Nodes}
	root, ok := b.readDocument()
	switch {
	case b.limit != nil:
		return Node{}, b.limit
	case !ok:
		return parseWithLibrary(text, line, budget, &b)
	}
	budget.Nodes = b.nodes
	return root, nil
}
