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

// unanswered is a call that no server answered, or that was not made.
func unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}

// refusal is the error of an answer that is not what was asked for. OpenFGA says why in the body; what
// others say there is nobody's business.
func (a answer) refusal() error {
	var told struct{ Code, Message string }
	if json.Unmarshal(a.body, &told) != nil {
		told.Code = ""
	}
	code, known := codeNamed(told.Code)
	if !known {
		code, told.Message = codeOf(a.code), fmt.Sprintf("HTTP status %d %s", a.code, http.StatusText(a.code))
	}
	s := status.New(code, told.Message)
	if wait, asked := a.retryAfter(); asked {
		if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}); err == nil {
			s = detailed
		}
	}
	return s.Err()
}

// codeNamed is the code that has a name in the HTTP API. Some of these are plain codes of gRPC, and one is
// that of an address which is not OpenFGA's: every call that we make has one.
func codeNamed(name string) (codes.Code, bool) {
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

// codeOf is what the status says where OpenFGA says nothing: then it is about what is between us and it.
func codeOf(httpStatus int) codes.Code {
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

// defaultWait is for a server that has had enough and does not say until when.
const defaultWait = time.Second

// retryAfter is for how long a server wants to be left alone.
func (a answer) retryAfter() (time.Duration, bool) {
	header := a.header.Get("Retry-After")
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1<<30)) * time.Second, true
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(time.Until(date), 0), true
	}
	return defaultWait, a.code == http.StatusTooManyRequests
}
