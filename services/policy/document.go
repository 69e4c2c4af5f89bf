package policy

// Document is one part of a policy, as it was written: nothing in it has been checked.
type Document struct {
	Source *Source
	// Damage says what the documents of a file lack; check makes no policy of a damaged one.
	Damage Damage

	ResourceTypes []ResourceType
	Unions        []Union
	Actions       []Action
	Bindings      []Binding
}

// Damage says how well a document could be read.
type Damage uint8

// Degrees of damage.
const (
	// Intact documents were read as they stand.
	Intact Damage = iota
	// Faulty documents have errors, but every name in them was read.
	Faulty
	// Incomplete documents have parts that could not be read: what seems to be missing may be there.
	Incomplete
)

// Name is a name as it was written; without text it is missing.
type Name struct {
	Text string
	At   Position
}

// ResourceType is a type of resource and its relationships to others.
type ResourceType struct {
	Name, IDPrefix Name
	Relationships  []Relationship
	At             Position
}

// Relationship names a relation from the resources of a type to those of others.
type Relationship struct {
	Relation Name
	// Targets are types and unions.
	Targets []Name
	At      Position
}

// Union is a common name for several types.
type Union struct {
	Name    Name
	Members []Name
	At      Position
}

// Action is something that can be done to resources.
type Action struct {
	Name Name
	At   Position
}

// Binding says that an action exists on a type, or on each member of a union, and who may take it:
// whoever meets one of the conditions.
type Binding struct {
	Action, Type Name
	Conditions   []Condition
	At           Position
}

// Condition is one way to be allowed. Exactly one of the two is set in a valid policy.
type Condition struct {
	// RoleBinding allows whom a role binding gives the action.
	RoleBinding bool
	// RelationshipAction allows who may take an action on a related resource.
	RelationshipAction *RelationshipAction
	At                 Position
}

// RelationshipAction is an action on the resources that a relation leads to.
type RelationshipAction struct {
	Relation, Action Name
	At               Position
}
