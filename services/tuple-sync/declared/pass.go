package declared

import "github.com/entail-dev/entail/services/internal/controller"

// passState holds the state of one reconciliation across its plans.
type passState struct {
	reporter controller.UntypedRequest
	key      Key
	resync   bool
	// unwritable holds objects that cannot be changed, by UID. The others continue.
	unwritable map[string]error
	// confirmed holds the former states verified with the API server, by UID.
	confirmed map[string]bool
	// forbidden holds a refusal of the API server that a later retry may resolve.
	forbidden error
}
