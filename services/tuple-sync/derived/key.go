package derived

import "github.com/entail-dev/entail/services/internal/event"

// workKind selects the work for a key.
type workKind int

const (
	none workKind = iota
	// tail examines the store as a whole: its existence, writes of others, and a new model.
	tail
	// back reads recent changes again; see [tupleReplica.rereadRecentChanges].
	back
	// whole compares the whole store with the copy.
	whole
	// tuples writes the tuples of one OpenFGA object.
	tuples
	// spread enqueues everything that depends on a declared object.
	spread
	// record writes the UID of the named user into a membership, or of the named organization into a project.
	record
	// status writes the conditions of a declared object.
	status
)

// Priorities of keys. Objects that lose tuples come first, then keys that may remove some, and statuses last. Granting
// much at once therefore delays no revocation.
const (
	revokes = 5
	// takes is for a declared object that was deleted or edited. mayTake is for OpenFGA objects that were not compared.
	takes    = 4
	mayTake  = 3
	spreads  = 2
	changes  = 1
	statuses = -1
)

// Key is the unit of reconciliation. The zero value stands for no work.
type Key struct {
	sort   workKind
	object string
	owner  event.Key
}

// String returns a description for logs.
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
		return "the recorded UID of " + k.owner.String()
	case status:
		return "status of " + k.owner.String()
	case none:
	}
	return ""
}
