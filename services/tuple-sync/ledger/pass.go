package ledger

import "github.com/entail-dev/entail/services/internal/consume"

// pass is what one reconciliation knows, whatever becomes of its plans.
type pass struct {
	reporter consume.Reporter
	key      Key
	resync   bool
	// unwritable are objects that the API server refuses to change, by UID. The others go on.
	unwritable map[string]error
	// confirmed are objects of which the API server has said what they are now, by UID.
	confirmed map[string]bool
	// forbidden is why an object could not be changed that waiting may open.
	forbidden error
}
