package command

import (
	"errors"

	"connectrpc.com/connect"
)

// Exit codes. They are part of the program's contract.
const (
	exitOK = iota
	// exitFailure is every failure that has no code of its own.
	exitFailure
	// exitUsage: the command line or a value in it is wrong.
	exitUsage
	// exitNotFound: what was asked about does not exist.
	exitNotFound
	// exitUnavailable: the server cannot be reached or has no answer yet.
	exitUnavailable
)

const exitCodesHelp = `Exit codes: 0 done, 1 failure, 2 wrong usage, 3 not found,
4 the server cannot be reached or has no answer yet.`

// errUsage marks errors of the command line.
var errUsage = errors.New("wrong usage")

// exitCode is the code that tells a script what went wrong.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errUsage):
		return exitUsage
	}
	switch connect.CodeOf(err) {
	case connect.CodeInvalidArgument:
		return exitUsage
	case connect.CodeNotFound:
		return exitNotFound
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded:
		return exitUnavailable
	default:
		return exitFailure
	}
}
