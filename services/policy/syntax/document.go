package syntax

import "github.com/entail-dev/entail/services/policy"

// Document is one part of a policy, as it was written: nothing in it has been checked.
type Document struct {
	Source *policy.Source
	// Object is namespace/name of the custom resource, if the document is the manifest of one.
	Object string

	ResourceTypes []ResourceType
	Unions        []Union
	Actions       []Action
	Bindings      []Binding

	// faulty documents have errors; of incomplete ones, parts could not be read.
	faulty, incomplete bool
}

// Valid reports whether the document was read without errors. There is no policy of one that was not.
func (d *Document) Valid() bool { return !d.faulty }

// Complete reports whether all of the document could be read, with errors or without: in one that
// is not complete, what seems to be missing may be there.
func (d *Document) Complete() bool { return !d.incomplete }

// Name is a name as it was written; without text it is missing.
type Name struct {
	Text string
	At   policy.Position
}

// ResourceType is a type of resource and its relationships to others.
type ResourceType struct {
	Name, IDPrefix Name
	Relationships  []Relationship
	At             policy.Position
}

// Relationship names a relation from the resources of a type to those of others.
type Relationship struct {
	Relation Name
	// Targets are types and unions.
	Targets []Name
	At      policy.Position
}

// Union is a common name for several types.
type Union struct {
	Name    Name
	Members []Name
	At      policy.Position
}

// Action is something that can be done to resources.
type Action struct {
	Name Name
	At   policy.Position
}

// Binding says that an action exists on a type, or on each member of a union, and who may take it:
// whoever meets one of the conditions.
type Binding struct {
	Action, Type Name
	Conditions   []Condition
	At           policy.Position
}

// Condition is one way to be allowed. Exactly one of the two is set in a valid policy.
type Condition struct {
	// RoleBinding allows whom a role binding gives the action.
	RoleBinding bool
	// RelationshipAction allows who may take an action on a related resource.
	RelationshipAction *RelationshipAction
	At                 policy.Position
}

// RelationshipAction is an action on the resources that a relation leads to.
type RelationshipAction struct {
	Relation, Action Name
	At               policy.Position
}
