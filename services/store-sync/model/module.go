package model

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
)

// Kind is what a module comes from. Kinds are numbered in canonical order.
type Kind int

// The kinds of module, in canonical order.
const (
	Core Kind = iota
	AuthorizationModel
	Policy
	IAM
	Discovered
)

// String returns the word that people see for the kind.
func (k Kind) String() string {
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

// Origin says where a module comes from, and thereby its place in the canonical order:
// by kind, then scope, then name.
type Origin struct {
	Kind Kind
	// Scope is the cluster of an AuthorizationModel or the group of a discovered API; often empty.
	Scope string
	// Name is the name of the object or resource; empty where a kind has only one module.
	Name string
}

// String returns the origin as people see it, such as "core" or "authorizationmodel/cluster/name".
func (o Origin) String() string {
	parts := []string{o.Kind.String()}
	for _, part := range []string{o.Scope, o.Name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// key is text whose order is that of Compare.
func (o Origin) key() string {
	return strings.Join([]string{strconv.Itoa(int(o.Kind)), o.Scope, o.Name}, "\x00")
}

// Compare orders origins canonically.
func (o Origin) Compare(p Origin) int {
	return cmp.Or(cmp.Compare(o.Kind, p.Kind), cmp.Compare(o.Scope, p.Scope), cmp.Compare(o.Name, p.Name))
}

// Module is the source of one module, in the OpenFGA DSL, that wants to be part of a store's model.
type Module struct {
	Origin Origin
	DSL    string
	// Types are in the place of DSL where nobody wrote a text. At most one module of a store has them.
	Types Types
	// API is what a generated module is for, such as "widgets.example.com"; empty where a person wrote the module.
	// Modules of equal text but for two APIs are no duplicates: they conflict.
	API string
	// Base is a type that the core module must define for this module to be one of the store's;
	// empty if it is one in any case.
	Base string
	// Yields means that an AuthorizationModel for the same API takes the module's place, with what is live of it.
	Yields bool
	// Fault says why there is no DSL. The module is then rejected with it.
	Fault string
	// Live is the text that was last part of the model, empty if none was. What it defines nobody but the
	// core module takes away: it stays where DSL cannot be part of the model.
	Live string
	// Created is when people made the module. Of two that none of which was ever live the older comes first.
	Created time.Time
}

// State is what became of a module.
type State string

// The states of a module.
const (
	// Merged: the module is part of the model.
	Merged State = "Merged"
	// Duplicate: an earlier module has the same text and is part of the model.
	Duplicate State = "Duplicate"
	// LastGoodLive: the module is not part of the model, but of its last live text is what still holds; the message says why.
	LastGoodLive State = "LastGoodLive"
	// Rejected: the module is not part of the model; the message says why and what to do.
	Rejected State = "Rejected"
)

// Report says what became of one module.
type Report struct {
	Origin Origin
	// Module is the name in the module's header, empty if it has none.
	Module string
	State  State
	// Message says for people what is wrong, where, and what to do. It is empty for a merged module.
	Message string
	// Digest stands for the types of a module that is no text.
	Digest string
	// Exceeds means that nothing is wrong with the module but that there is no room for it.
	Exceeds bool
	// Unread means that the text could not be read, so that nothing is known of what it was to take away.
	Unread bool
	// Live is the text that is to be the module's last live one from now on: its own if it is merged, else what
	// is left of the one before. Takes means that something which that one defined is no longer in it, or otherwise.
	Live  string
	Takes bool
}

// Result is what a merge yields.
type Result struct {
	// Model has no id. Its types are in order of name; marshalled deterministically, equal modules give equal bytes.
	Model *openfgav1.AuthorizationModel
	// Definitions tell which module each part of the model comes from.
	Definitions []Definition
	// Reports has one report for every module, in canonical order.
	Reports []Report
	// Room is what the module that is no text had to fit into; zero if there is none.
	Room Limits
}

// Definition is one type, relation or condition of a model, and where it comes from.
type Definition struct {
	// Type is empty for a condition.
	Type string
	// Relation is empty for a type and a condition.
	Relation string
	// Condition is empty for a type and a relation.
	Condition string
	// Module is the name of the module that defines it, empty in a model that was not merged from modules.
	Module string
	// Origin is where that module comes from; known only for a model that Merge made.
	Origin Origin
}

// CoreError says that a store can have no model because its core module cannot live.
type CoreError struct {
	// Message says what is wrong, where, and what to do.
	Message string
}

// Error implements error.
func (e *CoreError) Error() string {
	return "the core module is rejected, so the store can have no new model: " + e.Message
}
