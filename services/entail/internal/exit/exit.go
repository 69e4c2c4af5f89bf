// Package exit maps what went wrong to the exit code that tells a script so. The codes are
// part of the program's contract.
package exit

import (
	"errors"

	"connectrpc.com/connect"
)

// Exit codes.
const (
	OK = iota
	// Failure is every failure that has no code of its own.
	Failure
	// Usage: the command line or a value in it is wrong.
	Usage
	// NotFound: what was asked about does not exist.
	NotFound
	// Unavailable: the server cannot be reached or has no answer yet.
	Unavailable
)

// Help is what --help says of them.
const Help = `Exit codes: 0 done, 1 failure, 2 wrong usage, 3 not found,
4 the server cannot be reached or has no answer yet.`

// ErrUsage marks errors of the command line.
var ErrUsage = errors.New("wrong usage")

// ErrTold marks errors that an output tells already in a form for programs: nothing is added to it.
var ErrTold = errors.New("told")

// Code is the code of an error; one with a method ExitCode has its own.
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
