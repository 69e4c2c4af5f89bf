package rpc

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/entail-dev/entail/services/internal/fault"
)

// Fixed texts that replace causes which callers must not see.
var (
	errInternal    = errors.New("internal error; the server's log tells the cause")
	errUnavailable = errors.New("a system that the answer depends on is not reachable; try again")
	errDeadline    = errors.New("the answer took too long; try again or ask for less")
	errCanceled    = errors.New("the call was canceled")
)

// NotFoundError returns an error with a text for the caller: something does not exist.
func NotFoundError(format string, args ...any) error {
	return connect.NewError(connect.CodeNotFound, fmt.Errorf(format, args...))
}

// InvalidError returns an error with a text for the caller: the request is wrong.
func InvalidError(format string, args ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, args...))
}

// IncompleteError returns an error for the caller: the informer cannot answer yet. It returns nil if missing is nil:
//
//	if err := rpc.IncompleteError(informer.IncompleteErr()); err != nil { return nil, err }
func IncompleteError(missing error) error {
	if missing == nil {
		return nil
	}
	return connect.NewError(connect.CodeUnavailable, fmt.Errorf("the service has not read everything yet; try again: %w", missing))
}

// callerError returns the error for the caller. It keeps an error that was made for the caller, unless the error came
// from another server. containsCause reports whether the error for the caller contains the cause.
func callerError(ctx context.Context, err error) (failure *connect.Error, containsCause bool) {
	made, ok := errors.AsType[*connect.Error](err)
	switch {
	case ok && !connect.IsWireError(made):
		return made, true
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, errDeadline), false
	case ctx.Err() != nil:
		return connect.NewError(connect.CodeCanceled, errCanceled), true
	case fault.IsUnavailable(err), errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeUnavailable, errUnavailable), false
	default:
		return connect.NewError(connect.CodeInternal, errInternal), false
	}
}
