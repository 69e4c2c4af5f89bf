package impliedrole

// Key is what is reconciled as one: the RoleBindings of a namespace, or the statuses of its
// rules. Namespaces do not wait for each other, however much there is to do in one.
type Key struct {
	Namespace string
	Statuses  bool
}

// String is for logs.
func (k Key) String() string {
	if k.Statuses {
		return "statuses in namespace " + k.Namespace
	}
	return "namespace " + k.Namespace
}

// Priorities of keys: statuses do not hold up what somebody must lose.
const (
	bindingsFirst = 0
	statusesLast  = -1
)
