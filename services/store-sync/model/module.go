package model

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
)

// OriginKind is the kind of a module's source. Kinds are numbered in canonical order.
type OriginKind int

// The kinds of module, in canonical order.
const (
	Core OriginKind = iota
	AuthorizationModel
	Policy
	IAM
	Discovered
)

// String returns the name of the kind as users see it.
func (k OriginKind) String() string {
	switch k {
	case Core:
		return "core"
	case AuthorizationModel:
		return "authorizationmodel"
	case Policy:
		return "policydocument"
	case IAM:
		return "iam"
	case Discovered:
		return "discovered"
	default:
		return "unknown"
	}
}

// ModuleOrigin identifies the source of a module. Its canonical order is by kind, then scope, then name.
type ModuleOrigin struct {
	Kind OriginKind
	// Scope is the cluster of an AuthorizationModel, the namespace of a PolicyDocument or the group of a discovered
	// API. It may be empty.
	Scope string
	// Name is the name of the object or resource. It is empty for a kind with only one module.
	Name string
}

// String returns the origin as users see it, such as "core" or "authorizationmodel/cluster/name".
func (o ModuleOrigin) String() string {
	parts := []string{o.Kind.String()}
	for _, part := range []string{o.Scope, o.Name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// sortKey returns a text that sorts in the order of Compare.
func (o ModuleOrigin) sortKey() string {
	return strings.Join([]string{strconv.Itoa(int(o.Kind)), o.Scope, o.Name}, "\x00")
}

// Compare orders origins canonically.
func (o ModuleOrigin) Compare(p ModuleOrigin) int {
	return cmp.Or(cmp.Compare(o.Kind, p.Kind), cmp.Compare(o.Scope, p.Scope), cmp.Compare(o.Name, p.Name))
}

// Module is the source of one module of a store's model, in the OpenFGA DSL.
type Module struct {
	Origin ModuleOrigin
	DSL    string
	// Types replace DSL in a module without a text. At most one module of a store has them.
	Types GeneratedTypes
	// API names the API of a generated module, such as "widgets.example.com". It is empty for a module written by hand.
	// Modules with the same text for two APIs are no duplicates: they conflict.
	API string
	// Base is a type that the core module must define for this module to take part. It is empty if the module always
	// does.
	Base string
	// Yields means that an AuthorizationModel for the same API replaces the module and takes over its live text.
	Yields bool
	// Fault is the reason if the module has no DSL. The module is then rejected with it.
	Fault string
	// Live is the text that was last part of the model, empty if none was. What it defines nobody but the
	// core module takes away: it stays where DSL cannot be part of the model.
	Live string
	// Created is the creation time of the object. If two modules were never live, the older one comes first.
	Created time.Time
}

// MergeState is the result of the merge for a module.
type MergeState string

// The states of a module.
const (
	// Merged means that the module is part of the model.
	Merged MergeState = "Merged"
	// Duplicate means that another module with the same text is part of the model.
	Duplicate MergeState = "Duplicate"
	// LastGoodLive means that only the still valid part of the last live text is in the model. The message gives the
	// reason.
	LastGoodLive MergeState = "LastGoodLive"
	// Rejected means that the module is not part of the model. The message gives the reason and the remedy.
	Rejected MergeState = "Rejected"
)

// ModuleReport is the result of the merge for one module.
type ModuleReport struct {
	Origin ModuleOrigin
	// Module is the name in the module's header, empty if it has none.
	Module string
	State  MergeState
	// Message says for people what is wrong, where, and what to do. It is empty for a merged module.
	Message string
	// Digest identifies the types of a module without a text.
	Digest string
	// Exceeds means that the module is valid but the model has no room for it.
	Exceeds bool
	// Unread means that the text could not be parsed, so the definitions it removes are unknown.
	Unread bool
	// Live is the text that is to be the module's last live one from now on: its own if it is merged, else what
	// is left of the one before. Takes means that something which that one defined is no longer in it, or otherwise.
	Live  string
	Takes bool
}

// MergeResult is the result of a merge.
type MergeResult struct {
	// Model has no id. Its types are sorted by name. Equal modules give equal bytes in deterministic encoding.
	Model *openfgav1.AuthorizationModel
	// Definitions lists each part of the model with its module.
	Definitions []Definition
	// Reports has one report for every module, in canonical order.
	Reports []ModuleReport
	// Room is the space for the module without a text. It is zero if no such module exists.
	Room Limits
}

// Definition is one type, relation or condition of a model, with its source.
type Definition struct {
	// Type is empty for a condition.
	Type string
	// Relation is empty for a type and a condition.
	Relation string
	// Condition is empty for a type and a relation.
	Condition string
	// Module is the name of the module that defines it, empty in a model that was not merged from modules.
	Module string
	// Origin is the source of that module. It is set only in a model from Merge.
	Origin ModuleOrigin
}

// CoreError means that a store can have no model because its core module cannot live.
type CoreError struct {
	// Message says what is wrong, where, and what to do.
	Message string
}

// Error implements error.
func (e *CoreError) Error() string {
	return "the core module is rejected, so the store can have no new model: " + e.Message
}
