package impliedrole

// Key is the unit of reconciliation: the RoleBindings of a namespace, or the statuses of its rules. Namespaces do not
// wait for each other.
type Key struct {
	Namespace string
	Statuses  bool
}

// String returns the text for logs.
func (k Key) String() string {
	if k.Statuses {
		return "statuses in namespace " + k.Namespace
	}
	return "namespace " + k.Namespace
}

// Priorities of keys. Statuses come last, so they do not delay revocations.
const (
	bindingsFirst = 0
	statusesLast  = -1
)
