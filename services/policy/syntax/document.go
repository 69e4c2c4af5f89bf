package syntax

import "github.com/entail-dev/entail/services/policy"

// Document is one part of a policy in its written form. Its content has not been checked.
type Document struct {
	Source *policy.DocumentSource
	// Object is the namespace/name of the custom resource if the document is in a manifest.
	Object string

	ResourceTypes []ResourceType
	Unions        []Union
	Actions       []Action
	Bindings      []Binding

	// faulty is true if the document has errors, incomplete if parts could not be read.
	faulty, incomplete bool
}

// IsValid reports whether the document was read without errors. Package check makes no policy of an invalid document.
func (d *Document) IsValid() bool { return !d.faulty }

// IsComplete reports whether the whole document could be read, with or without errors. In an incomplete document, a part
// that seems to be missing may exist.
func (d *Document) IsComplete() bool { return !d.incomplete }

// Name is a name in its written form; an empty text means that it is missing.
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

// Relationship is a relation from the resources of a type to others.
type Relationship struct {
	Relation Name
	// Targets holds names of types and unions.
	Targets []Name
	At      policy.Position
}

// Union is a name for several types.
type Union struct {
	Name    Name
	Members []Name
	At      policy.Position
}

// Action is an action on resources.
type Action struct {
	Name Name
	At   policy.Position
}

// Binding binds an action to a type, or to each member of a union. A subject that meets one of the conditions may take
// the action.
type Binding struct {
	Action, Type Name
	Conditions   []Condition
	At           policy.Position
}

// Condition is one way to get an action. A valid policy sets exactly one of the two fields.
type Condition struct {
	// RoleBinding allows subjects to which a role binding gives the action.
	RoleBinding bool
	// RelationshipAction allows subjects with an action on a related resource.
	RelationshipAction *RelationshipAction
	At                 policy.Position
}

// RelationshipAction is an action on the targets of a relation.
type RelationshipAction struct {
	Relation, Action Name
	At               policy.Position
}
