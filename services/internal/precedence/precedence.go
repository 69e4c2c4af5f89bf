// Package precedence decides which of several objects owns a name that all of them define. A name stands for a type,
// relation or condition of a model, or for a tuple. The package does no I/O.
package precedence

import (
	"cmp"
	"strings"
	"time"
)

// Liveness grades how much of an object's claim to a name is already live.
type Liveness int

// The states of a claim, the strongest first.
const (
	// Present means that the object's present text is live.
	Present Liveness = iota
	// Earlier means that an earlier text of the object is live.
	Earlier
	// None means that no text of the object is live.
	None
)

// Claim holds the facts that decide whether an object owns a name that it defines.
type Claim struct {
	// Core marks the Store itself, which precedes all other objects.
	Core bool
	Live Liveness
	// Document marks the claim of a PolicyDocument's module to a name that it has never owned.
	Document bool
	// Served marks a discovered module.
	Served bool
	// Created is the creation time of the object.
	Created time.Time
	// Name decides if all other fields are equal.
	Name string
}

// Compare orders claims, the strongest first.
func Compare(a, b Claim) int {
	return cmp.Or(
		compareTrueFirst(a.Core, b.Core), cmp.Compare(a.Live, b.Live), compareTrueFirst(a.Document, b.Document), compareTrueFirst(b.Served, a.Served),
		a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name),
	)
}

// compareTrueFirst orders true before false.
func compareTrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
