package explain

import "github.com/entail-dev/entail/services/policy"

// Tree is an action on a type, with the ways to get it. Each way is sufficient.
type Tree struct {
	Type   string `json:"type"`
	Action string `json:"action"`
	// On is the union that the binding names; it is empty if the binding names the type itself.
	On string `json:"on,omitempty"`
	// Ending is the reason why some ways are not shown; it is empty if all are.
	Ending Ending `json:"ending,omitempty"`
	// Bound is the place of the binding.
	Bound Origin `json:"bound,omitzero"`
	// NeverGranted is true if no way begins with a role binding, so no subject can have the action.
	NeverGranted bool `json:"neverGranted,omitempty"`
	// Role is the way through role bindings on the resource itself; it is nil if there is none.
	Role *Role `json:"role,omitempty"`
	// Steps holds the ways through other resources.
	Steps []Step `json:"steps,omitempty"`
}

// Ending is the reason why a tree does not show all ways.
type Ending string

// Endings.
const (
	// Recursion ends a tree that would contain itself, for a resource further away.
	Recursion Ending = "recursion"
	// Above ends a tree that is shown completely elsewhere.
	Above Ending = "above"
	// Cut ends a tree that is too large or too deep to read.
	Cut Ending = "cut"
)

// Role is the way through role bindings.
type Role struct {
	// Relation holds the role bindings.
	Relation string `json:"relation"`
	// Holder is the userset that a role binding refers to: the subjects of a role.
	Holder string `json:"holder"`
}

// Step is the way through the targets of a relation.
type Step struct {
	Relation string `json:"relation"`
	Action   string `json:"action"`
	// Declared is the place where the type declares the relation. The binding contains the step itself.
	Declared Origin `json:"declared"`
	// Targets holds a tree for each target type of the relation.
	Targets []*Tree `json:"targets,omitempty"`
	// More counts the targets that are not shown because there are too many.
	More int `json:"more,omitempty"`
}

// Origin is the place of a declaration, with the owner of its document.
type Origin struct {
	policy.Place

	Owner string `json:"owner,omitempty"`
}

// String returns the place, and the owner if it is known.
func (o Origin) String() string {
	if o.Owner == "" {
		return o.Place.String()
	}
	return o.Place.String() + ", " + o.Owner
}

func origin(s *policy.Source, at policy.Position) Origin {
	if s == nil {
		return Origin{}
	}
	return Origin{Place: s.At(at), Owner: s.Owner}
}
