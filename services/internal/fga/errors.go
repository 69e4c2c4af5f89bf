package fga

import (
	"context"
	"errors"
	"fmt"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/truncate"
)

// Errors for errors.Is.
var (
	// ErrStoreNotFound means that no store has this id.
	ErrStoreNotFound = errors.New("OpenFGA store not found")
	// ErrModelNotFound means that the store has no model of this id, or no model at all.
	ErrModelNotFound = errors.New("authorization model not found")
	// ErrInvalidModel means that the server refuses the model. A retry with the same model fails again.
	ErrInvalidModel = errors.New("OpenFGA refuses the authorization model")
	// ErrInvalidTuple means that a tuple is invalid under the model. No tuple of its chunk was written.
	ErrInvalidTuple = errors.New("OpenFGA refuses a tuple")
	// ErrInvalidName means that OpenFGA does not allow this store name.
	ErrInvalidName = errors.New("not a name for an OpenFGA store")
	// ErrTooComplex means that a decision takes more steps than the server allows.
	ErrTooComplex = errors.New("the decision takes more steps than OpenFGA allows")
	// ErrTimeout means that the server ran out of its own time for the call.
	ErrTimeout = errors.New("OpenFGA ran out of time")
	// ErrUnsupported means that the server does not implement the call.
	ErrUnsupported = errors.New("not supported by this OpenFGA server")
)

// OpenFGA uses codes of its own beside those of gRPC. They lie in the ranges of its enumerations: AuthErrorCode,
// ErrorCode, UnprocessableContentErrorCode, InternalErrorCode and NotFoundErrorCode.
const (
	firstAuth     = codes.Code(openfgav1.AuthErrorCode_auth_failed_invalid_subject)
	firstInput    = codes.Code(openfgav1.ErrorCode_validation_error)
	firstTrouble  = codes.Code(openfgav1.UnprocessableContentErrorCode_throttled_timeout_error)
	firstNotFound = codes.Code(openfgav1.NotFoundErrorCode_undefined_endpoint)

	storeIDNotFound     = codes.Code(openfgav1.NotFoundErrorCode_store_id_not_found)
	unimplemented       = codes.Code(openfgav1.NotFoundErrorCode_unimplemented)
	tooComplex          = codes.Code(openfgav1.ErrorCode_authorization_model_resolution_too_complex)
	throttledTimeout    = codes.Code(openfgav1.UnprocessableContentErrorCode_throttled_timeout_error)
	deadlineExceeded    = codes.Code(openfgav1.InternalErrorCode_deadline_exceeded)
	cancelled           = codes.Code(openfgav1.ErrorCode_cancelled)
	modelNotFound       = codes.Code(openfgav1.ErrorCode_authorization_model_not_found)
	latestModelNotFound = codes.Code(openfgav1.ErrorCode_latest_authorization_model_not_found)
)

// maxMessage bounds the text of an answer in bytes, because it goes into conditions. The server can report one error
// for each of a thousand types.
const maxMessage = 1 << 10

// serverError is an error of the server: its code, its text and, if there is one, the matching error of this package.
type serverError struct {
	code     codes.Code
	message  string
	sentinel error
}

func (a *serverError) Error() string {
	return fmt.Sprintf("OpenFGA answers %s: %s", codeName(a.code), a.message)
}

func (a *serverError) Unwrap() error { return a.sentinel }

// serverCodeOf returns the code of the answer in err's tree, or OK if it contains none.
func serverCodeOf(err error) codes.Code {
	if a, ok := errors.AsType[*serverError](err); ok {
		return a.code
	}
	return codes.OK
}

// classifyError converts the error of a call into an answer with a class of package fault. Errors that are not caused by the
// request are unavailability of the server, so callers retry.
func classifyError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fault.Unavailable(fmt.Errorf("call to OpenFGA cut short: %w", context.Cause(ctx)))
	}
	s := status.Convert(err)
	a := &serverError{code: s.Code(), message: truncate.Text(s.Message(), maxMessage), sentinel: sentinelForCode(s.Code())}
	if isCausedByRequest(s) {
		return a
	}
	return fault.Unavailable(a)
}

func sentinelForCode(code codes.Code) error {
	switch code {
	case storeIDNotFound:
		return ErrStoreNotFound
	case modelNotFound, latestModelNotFound:
		return ErrModelNotFound
	case codes.Unimplemented, unimplemented:
		return ErrUnsupported
	case tooComplex:
		return ErrTooComplex
	case codes.DeadlineExceeded, deadlineExceeded, throttledTimeout:
		return ErrTimeout
	default:
		return nil
	}
}

// isCausedByRequest reports whether the same request would fail again. A refused token does not count: an operator can
// replace it, and retries then succeed.
func isCausedByRequest(s *status.Status) bool {
	switch code := s.Code(); code {
	case cancelled:
		return false
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented:
		return true
	case codes.ResourceExhausted:
		// The gRPC client and server both report a message over the size limit in this way. No other detail marks it.
		return strings.Contains(s.Message(), "larger than max")
	default:
		return code >= firstInput && code < firstTrouble || code >= firstNotFound
	}
}

// isUnauthenticated reports whether the server rejected the credentials.
func isUnauthenticated(err error) bool {
	code := serverCodeOf(err)
	return code == codes.Unauthenticated || code >= firstAuth && code < firstInput
}

// codeName returns OpenFGA's name of a code, if it has one.
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

// isContentRefusal reports whether the server refuses the content of the request, not the objects it refers to.
func (a *serverError) isContentRefusal() bool {
	return a.code == codes.InvalidArgument || a.code >= firstInput && a.code < firstTrouble && a.code != cancelled
}
