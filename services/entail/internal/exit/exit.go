// Package exit maps errors to exit codes, which scripts rely on. The codes are part of the contract of the program.
package exit

import (
	"errors"

	"connectrpc.com/connect"
)

// Exit codes.
const (
	OK = iota
	// Failure is the code of every error without a code of its own.
	Failure
	// Usage means that the command line or a value in it is wrong.
	Usage
	// NotFound means that the requested object does not exist.
	NotFound
	// Unavailable means that the server cannot be reached or has no answer yet.
	Unavailable
	// Undecided means that the answer is incomplete: a part of it was cut off or took too long.
	Undecided
)

// Help is the text of the exit codes in --help.
const Help = `Exit codes: 0 done, 1 failure, 2 wrong usage, 3 not found,
4 the server cannot be reached or has no answer yet, 5 undecided: a part of the
answer was cut off or took too long.`

// ErrUsage marks errors of the command line.
var ErrUsage = errors.New("wrong usage")

// ErrTold marks errors that the output already contains; no error text is printed for them.
var ErrTold = errors.New("told")

// NotFoundError means that a name in the command line is unknown. Err suggests the nearest names.
type NotFoundError struct{ Err error }

// Error returns the text of Err.
func (n NotFoundError) Error() string { return n.Err.Error() }

// Unwrap returns Err.
func (n NotFoundError) Unwrap() error { return n.Err }

// ExitCode returns the code of an unknown name.
func (NotFoundError) ExitCode() int { return NotFound }

// Code returns the exit code of an error. An error with a method ExitCode returns its own.
func Code(err error) int {
	var own interface{ ExitCode() int }
	switch {
	case err == nil:
		return OK
	case errors.Is(err, ErrUsage):
		return Usage
	case errors.As(err, &own):
		return own.ExitCode()
	}
	switch connect.CodeOf(err) {
	case connect.CodeInvalidArgument:
		return Usage
	case connect.CodeNotFound:
		return NotFound
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded:
		return Unavailable
	default:
		return Failure
	}
}
