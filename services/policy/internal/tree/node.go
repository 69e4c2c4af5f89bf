package tree

import "fmt"

// Kind of a node.
type Kind uint8

// Kinds of node.
const (
	Null Kind = iota
	Scalar
	Sequence
	Mapping
)

// String is what people call a value of the kind.
func (k Kind) String() string {
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

// Node is a value and where it begins. Aliases and merge keys have been resolved.
type Node struct {
	// Text is that of a scalar.
	Text string
	// Children are the items of a sequence, or keys and values of a mapping in turn.
	Children []Node
	// Line and Column count from 1.
	Line, Column int32
	Kind         Kind
	// Plain says that a scalar is written without quotes.
	Plain bool
}

// Budget bounds what documents may cost; reading spends it.
type Budget struct {
	// Depth is how deep values may nest; it is not spent.
	Depth int
	// Nodes is how many nodes there may still be, aliases counted as often as they stand.
	Nodes int
	// General is how many bytes the library may still read.
	General int
}

// Error says why a document cannot be read, and where.
type Error struct {
	Line, Column  int32
	Message, Hint string
	// Limit says that the document is not wrong, but too much.
	Limit bool
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

func tooDeep(line, column int32, depth int) *Error {
	return &Error{
		Line: line, Column: column, Limit: true,
		Message: fmt.Sprintf("values nest deeper than %d levels", depth),
		Hint:    "a policy needs 8: look for indentation or brackets that went wrong",
	}
}

func tooMany(line, column int32) *Error {
	return &Error{
		Line: line, Column: column, Limit: true,
		Message: "there are too many values, counting aliases as often as they are used",
		Hint:    "split the policy, or use fewer aliases",
	}
}

// Parse reads one document that begins at line of its file. An empty one is Null.
// Its errors are of type *Error.
func Parse(text string, line int, budget *Budget) (Node, error) {
	b := block{text: text, line: int32(line) - 1, budget: budget, nodes: budget.Nodes}
	root, ok := b.document()
	switch {
	case b.limit != nil:
		return Node{}, b.limit
	case !ok:
		return parseGeneral(text, line, budget, &b)
	}
	budget.Nodes = b.nodes
	return root, nil
}
