package mirror

import "github.com/entail-dev/entail/services/internal/event"

// sort is what is to be done with a key.
type sort int

const (
	none sort = iota
	// tail looks at the store as a whole: is it there, what have others written, has the model changed.
	tail
	// back reads again what was written lately.
	back
	// whole compares all that the store holds with the copy.
	whole
	// tuples makes an object of OpenFGA hold what it is to hold.
	tuples
	// spread finds all that depends on a declared object.
	spread
	// record says in a membership for whom it is, and in a project to whom it belongs.
	record
	// status says in a declared object whether all that follows from it is there.
	status
)

// Priorities. Objects that lose something go first, then whatever may take something away, and statuses last: who gives much
// at once holds up nobody from whom something is taken.
const (
	revokes = 5
	// takes is that of a declared object that is gone or was edited, mayTake that of an object of OpenFGA that nobody has compared.
	takes    = 4
	mayTake  = 3
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
	case back:
		return "recent changes of the IAM store"
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
