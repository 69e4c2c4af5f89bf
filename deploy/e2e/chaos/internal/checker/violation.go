package checker

import (
	"errors"
	"fmt"
	"strings"
)

// ViolationKind is the kind of a [Violation].
type ViolationKind string

// Kinds of violations. Each is a fault, never a flake: CI does not repeat a test that reports one.
const (
	// Allow means that a server answers yes although the grant was revoked and the revocation had settled.
	Allow ViolationKind = "allow"
	// Leak means that OpenFGA holds a revoked tuple although the revocation had settled.
	Leak ViolationKind = "leak"
	// Loss means that the system does not come to rest as declared. Something is missing, surplus or wrong.
	Loss ViolationKind = "loss"
	// Write means that a replay wrote to a backend although the system was at rest.
	Write ViolationKind = "write"
	// Crash means that a process ended unexpectedly, or did not end in order after SIGTERM.
	Crash ViolationKind = "crash"
	// Stuck means that an operation or a blow could not be executed or ended.
	Stuck ViolationKind = "stuck"
	// Late means that a change was not applied within its bound.
	Late ViolationKind = "late"
)

// Violation is an observation that must never be made.
type Violation struct { //nolint:errname // The report names a violation, whether it was returned or not.
	Kind ViolationKind
	Err  error
}

// AsViolation returns err as a violation. An error without a kind is [Stuck].
func AsViolation(err error) Violation {
	if v, ok := errors.AsType[Violation](err); ok {
		return Violation{v.Kind, err}
	}
	return Violation{Stuck, err}
}

// Error returns the text without the kind.
func (v Violation) Error() string { return v.Err.Error() }

// Unwrap returns the cause.
func (v Violation) Unwrap() error { return v.Err }

// ReportText returns the text as CI recognizes it: the first line begins with "finding: <kind>: ", the others with spaces.
func (v Violation) ReportText() string {
	return fmt.Sprintf("finding: %s: %s", v.Kind, strings.ReplaceAll(v.Err.Error(), "\n", "\n  "))
}
