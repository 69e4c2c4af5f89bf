package fga

import (
	"context"
	"errors"
	"fmt"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/entail-dev/entail/services/internal/clip"
	"github.com/entail-dev/entail/services/internal/fault"
)

// What callers branch on, with errors.Is.
var (
	// ErrStoreNotFound means that the server knows no store of this id.
	ErrStoreNotFound = errors.New("OpenFGA store not found")
	// ErrModelNotFound means that the store has no model of this id, or none at all.
	ErrModelNotFound = errors.New("authorization model not found")
	// ErrInvalidModel means that the server refuses the model; the same model will never do.
	ErrInvalidModel = errors.New("OpenFGA refuses the authorization model")
	// ErrInvalidTuple means that the server refuses a tuple under the given model. Nothing of its chunk was written.
	ErrInvalidTuple = errors.New("OpenFGA refuses a tuple")
	// ErrInvalidName means that OpenFGA allows no store of this name.
	ErrInvalidName = errors.New("not a name for an OpenFGA store")
	// ErrUnsupported means that this server has no such function.
	ErrUnsupported = errors.New("not supported by this OpenFGA server")
)

// OpenFGA answers with codes of its own, which lie in the ranges of its
// enumerations (AuthErrorCode, ErrorCode, UnprocessableContentErrorCode,
// InternalErrorCode, NotFoundErrorCode) beside those of gRPC.
const (
	firstAuth     = codes.Code(openfgav1.AuthErrorCode_auth_failed_invalid_subject)
	firstInput    = codes.Code(openfgav1.ErrorCode_validation_error)
	firstTrouble  = codes.Code(openfgav1.UnprocessableContentErrorCode_throttled_timeout_error)
	firstNotFound = codes.Code(openfgav1.NotFoundErrorCode_undefined_endpoint)

	storeIDNotFound     = codes.Code(openfgav1.NotFoundErrorCode_store_id_not_found)
	unimplemented       = codes.Code(openfgav1.NotFoundErrorCode_unimplemented)
	cancelled           = codes.Code(openfgav1.ErrorCode_cancelled)
	modelNotFound       = codes.Code(openfgav1.ErrorCode_authorization_model_not_found)
	latestModelNotFound = codes.Code(openfgav1.ErrorCode_latest_authorization_model_not_found)
)

// maxMessage bounds the text of an answer, in bytes: it goes into conditions, and the server
// can find one fault in each of a thousand types.
const maxMessage = 1 << 10

// answer is a refusal by the server: its code, its text, and where we have one, the sentinel that says the same.
type answer struct {
	code     codes.Code
	message  string
	sentinel error
}

func (a *answer) Error() string {
	return fmt.Sprintf("OpenFGA answers %s: %s", codeName(a.code), a.message)
}

func (a *answer) Unwrap() error { return a.sentinel }

// codeOf is the code of the answer in err's tree; OK when there is none.
func codeOf(err error) codes.Code {
	if a, ok := errors.AsType[*answer](err); ok {
		return a.code
	}
	return codes.OK
}

// classify turns the error of a call into an answer with a class of package fault.
// Whatever is not about the request itself is the server's trouble, and passes.
func classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fault.Unavailable(fmt.Errorf("call to OpenFGA cut short: %w", context.Cause(ctx)))
	}
	s := status.Convert(err)
	a := &answer{code: s.Code(), message: clip.Text(s.Message(), maxMessage), sentinel: sentinelOf(s.Code())}
	if aboutRequest(s) {
		return a
	}
	return fault.Unavailable(a)
}

func sentinelOf(code codes.Code) error {
	switch code {
	case storeIDNotFound:
		return ErrStoreNotFound
	case modelNotFound, latestModelNotFound:
		return ErrModelNotFound
	case codes.Unimplemented, unimplemented:
		return ErrUnsupported
	default:
		return nil
	}
}

// aboutRequest reports whether the same request would meet the same answer again.
// A refused token is not about the request: an operator mends it, and work goes on.
func aboutRequest(s *status.Status) bool {
	switch code := s.Code(); code {
	case cancelled:
		return false
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented:
		return true
	case codes.ResourceExhausted:
		// Both ends of gRPC speak so of a message over the limit, with no other mark.
		return strings.Contains(s.Message(), "larger than max")
	default:
		return code >= firstInput && code < firstTrouble || code >= firstNotFound
	}
}

// unauthenticated reports whether the server does not accept who asks.
func unauthenticated(err error) bool {
	code := codeOf(err)
	return code == codes.Unauthenticated || code >= firstAuth && code < firstInput
}

// codeName is OpenFGA's name of a code where it has one.
func codeName(code codes.Code) string {
	number := int32(code)
	names := openfgav1.NotFoundErrorCode_name
	switch {
	case code < firstAuth:
		return code.String()
	case code < firstInput:
		names = openfgav1.AuthErrorCode_name
	case code < firstTrouble:
		names = openfgav1.ErrorCode_name
	case code < firstNotFound:
		names = openfgav1.InternalErrorCode_name
	}
	if name, ok := names[number]; ok {
		return fmt.Sprintf("%s (%d)", name, number)
	}
	return fmt.Sprintf("code %d", number)
}

// aboutContent reports whether the server dislikes what the request carries, not what it refers to.
func (a *answer) aboutContent() bool {
	return a.code == codes.InvalidArgument || a.code >= firstInput && a.code < firstTrouble && a.code != cancelled
}
