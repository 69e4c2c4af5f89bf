package rpc

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/entail-dev/entail/services/internal/fault"
)

// Texts for causes that are none of the caller's business.
var (
	errInternal    = errors.New("internal error; the server's log tells the cause")
	errUnavailable = errors.New("a system that the answer depends on is not reachable; try again")
	errDeadline    = errors.New("the answer took too long; try again or ask for less")
	errCanceled    = errors.New("the call was canceled")
)

// NotFound tells the caller that something does not exist, in these words.
func NotFound(format string, args ...any) error {
	return connect.NewError(connect.CodeNotFound, fmt.Errorf(format, args...))
}

// Invalid tells the caller what is wrong with the request, in these words.
func Invalid(format string, args ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, args...))
}

// Incomplete tells the caller that the view cannot answer yet. Nil stays nil:
//
//	if err := rpc.Incomplete(view.Complete()); err != nil { return nil, err }
func Incomplete(missing error) error {
	if missing == nil {
		return nil
	}
	return connect.NewError(connect.CodeUnavailable, fmt.Errorf("the service does not know everything yet, try again: %w", missing))
}

// failureOf maps any error to what the caller may read. An error that was made for the
// caller stays as it is, unless it came over the wire from another server; told is then true.
func failureOf(ctx context.Context, err error) (failure *connect.Error, told bool) {
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
