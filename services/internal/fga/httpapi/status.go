package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// noAnswerError returns the gRPC error of a call that got no answer or was not sent.
func noAnswerError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}

// grpcStatusError returns the gRPC error for a response without success. It uses the code and message in the body only
// if they come from OpenFGA.
func (a httpResponse) grpcStatusError() error {
	var told struct{ Code, Message string }
	if json.Unmarshal(a.body, &told) != nil {
		told.Code = ""
	}
	code, known := codeByName(told.Code)
	if !known {
		code, told.Message = codeOfHTTPStatus(a.code), fmt.Sprintf("HTTP status %d %s", a.code, http.StatusText(a.code))
	}
	s := status.New(code, told.Message)
	if wait, asked := a.retryAfter(); asked {
		if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}); err == nil {
			s = detailed
		}
	}
	return s.Err()
}

// codeByName returns the code that has a name in the HTTP API. A few names mean plain gRPC codes. An undefined
// endpoint does not count as an answer of OpenFGA: all endpoints of this package exist, so the address is wrong.
func codeByName(name string) (codes.Code, bool) {
	switch name {
	case openfgav1.NotFoundErrorCode_undefined_endpoint.String():
		return 0, false
	case codes.Aborted.String():
		return codes.Aborted, true
	case openfgav1.InternalErrorCode_resource_exhausted.String():
		return codes.ResourceExhausted, true
	case openfgav1.InternalErrorCode_already_exists.String():
		return codes.AlreadyExists, true
	case openfgav1.InternalErrorCode_failed_precondition.String():
		return codes.FailedPrecondition, true
	case openfgav1.InternalErrorCode_out_of_range.String():
		return codes.OutOfRange, true
	}
	for _, numbers := range []map[string]int32{
		openfgav1.AuthErrorCode_value, openfgav1.ErrorCode_value, openfgav1.UnprocessableContentErrorCode_value,
		openfgav1.InternalErrorCode_value, openfgav1.NotFoundErrorCode_value,
	} {
		if number := numbers[name]; number != 0 {
			return codes.Code(number), true
		}
	}
	return 0, false
}

// codeOfHTTPStatus returns the gRPC code for an HTTP status without an OpenFGA code. Such a response usually comes
// from a proxy.
func codeOfHTTPStatus(httpStatus int) codes.Code {
	switch httpStatus {
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusRequestEntityTooLarge:
		return codes.OutOfRange
	default:
		return codes.Unavailable
	}
}

// defaultWait is the pause after status 429 without a Retry-After header.
const defaultWait = time.Second

// retryAfter returns the pause that the server requests, and whether it requests one.
func (a httpResponse) retryAfter() (time.Duration, bool) {
	header := a.header.Get("Retry-After")
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1<<30)) * time.Second, true
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(time.Until(date), 0), true
	}
	return defaultWait, a.code == http.StatusTooManyRequests
}
