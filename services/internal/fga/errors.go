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
	// ErrStoreNotFound means that no store has this ID.
	ErrStoreNotFound = errors.New("OpenFGA store not found")
	// ErrModelNotFound means that the store has no model with this ID, or no model at all.
	ErrModelNotFound = errors.New("authorization model not found")
	// ErrInvalidModel means that the server refuses the model. A retry with the same model fails again.
	ErrInvalidModel = errors.New("OpenFGA refuses the authorization model")
	// ErrInvalidTuple means that a tuple is invalid under the model. No tuple of the same Write call was written.
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

// OpenFGA returns its own codes in addition to those of gRPC. They are in the ranges of its enumerations
// AuthErrorCode, ErrorCode, UnprocessableContentErrorCode, InternalErrorCode and NotFoundErrorCode.
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

// maxMessage bounds the text of an error in bytes, because the text is copied to conditions. The server can report one
// error for each of a thousand types.
const maxMessage = 1 << 10

// serverError is an error that the server returned: its code, its text, and the matching error of this package, if
// any.
type serverError struct {
	code     codes.Code
	message  string
	sentinel error
}

func (a *serverError) Error() string {
	return fmt.Sprintf("OpenFGA answers %s: %s", codeName(a.code), a.message)
}

func (a *serverError) Unwrap() error { return a.sentinel }

// serverCodeOf returns the server's code in err, or OK if err has none.
func serverCodeOf(err error) codes.Code {
	if a, ok := errors.AsType[*serverError](err); ok {
		return a.code
	}
	return codes.OK
}

// classifyError converts the error of a call to an error with a class of package fault. An error that the request did
// not cause counts as unavailable, so callers retry.
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

// isCausedByRequest reports whether the same request would fail again. It returns false for a refused token, because
// an operator can replace the token.
func isCausedByRequest(s *status.Status) bool {
	switch code := s.Code(); code {
	case cancelled:
		return false
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented:
		return true
	case codes.ResourceExhausted:
		// The gRPC client and the server both report a message over the size limit in this way. Nothing else in the
		// error identifies it.
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

// codeName returns OpenFGA's name of a code, if there is one.
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

// isContentRefusal reports whether the server refused the content of the request. It returns false if an object that
// the request names does not exist.
func (a *serverError) isContentRefusal() bool {
	return a.code == codes.InvalidArgument || a.code >= firstInput && a.code < firstTrouble && a.code != cancelled
}
