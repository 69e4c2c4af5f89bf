package mirror

import "github.com/entail-dev/entail/services/internal/event"

// sort is what is to be done with a key.
type sort int

const (
	none sort = iota
	// tail looks at the store as a whole: is it there, what have others written, has the model changed.
	tail
	// whole compares all that the store holds with the copy.
	whole
	// tuples makes an object of OpenFGA hold what it is to hold.
	tuples
	// spread finds all that depends on a declared object.
	spread
	// record says in a membership for whom it is.
	record
	// status says in a declared object whether all that follows from it is there.
	status
)

// Priorities. Who may lose something goes first, and statuses last.
const (
	revokes  = 3
	spreads  = 2
	changes  = 1
	statuses = -1
)

// Key is what is reconciled as one. The zero value is none of ours.
type Key struct {
	sort   sort
	object string
	owner  event.Key
}

// String is for logs.
func (k Key) String() string {
	switch k.sort {
	case tail:
		return "IAM store"
	case whole:
		return "all of the IAM store"
	case tuples:
		return "tuples of " + k.object
	case spread:
		return "what depends on " + k.owner.String()
	case record:
		return "who is meant by " + k.owner.String()
	case status:
		return "status of " + k.owner.String()
	case none:
	}
	return ""
}
