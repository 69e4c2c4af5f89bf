package kube

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/entail-dev/entail/services/internal/fault"
)

// Errors for errors.Is.
var (
	// ErrNotFound means that the object does not exist.
	ErrNotFound = errors.New("object not found")
	// ErrConflict means that the object was created, changed or re-created in the meantime. Read the object again and
	// decide again. Retries are not counted.
	ErrConflict = errors.New("object was changed meanwhile")
	// ErrTooLarge means that the object is too large for the API server. It is terminal.
	ErrTooLarge = errors.New("object is too large for the API server")
	// ErrUndeclaredField means that the CustomResourceDefinition lacks a field of the request. It counts as unavailable.
	ErrUndeclaredField = errors.New("the CustomResourceDefinition lacks a field")
	// ErrForbidden means that the service lacks a right, or that admission refused the request. It counts as
	// unavailable, because no change reports that the right was granted.
	ErrForbidden = errors.New("the API server forbids it")
	// ErrTerminating means that the namespace is being deleted, so nothing can be created in it.
	ErrTerminating = errors.New("the namespace is being deleted")
	// ErrNotServed means that the API server does not serve the kind yet. It counts as unavailable.
	ErrNotServed = errors.New("the API server does not serve this kind: apply the CustomResourceDefinitions in deploy/crd")
)

// classifyError marks the error of a request with a class of package fault. Only errors that the request itself caused
// count as failed attempts.
func classifyError(err error) error {
	switch {
	case err == nil:
		return nil
	case isNotServed(err):
		return fault.Unavailable(fmt.Errorf("%w (%w)", ErrNotServed, err))
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w (%w)", ErrNotFound, err)
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return fault.Unavailable(fmt.Errorf("%w (%w)", ErrConflict, err))
	case isTooLarge(err):
		return fault.Terminal(fmt.Errorf("%w (%w)", ErrTooLarge, err))
	case strings.Contains(apiStatusOf(err).Message, "field not declared in schema"):
		return fault.Unavailable(fmt.Errorf("%w (%w)", ErrUndeclaredField, err))
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("%w (%w)", ErrTerminating, err)
	case apierrors.IsForbidden(err) || isDeniedByAdmission(err):
		return fault.Unavailable(fmt.Errorf("%w (%w)", ErrForbidden, err))
	}
	switch code := apiStatusOf(err).Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return fault.Unavailable(err)
	default:
		if code >= http.StatusBadRequest && code < http.StatusInternalServerError {
			return err
		}
		return fault.Unavailable(err)
	}
}

// isDeniedByAdmission reports whether admission refused the request. A ValidatingAdmissionPolicy usually returns
// Invalid with a cause that has no type. A webhook may return any code. Neither refusal is final: a policy also
// refuses requests while a newly started API server has not found the resources that the policy refers to.
func isDeniedByAdmission(err error) bool {
	return apierrors.IsInvalid(err) && apierrors.HasStatusCause(err, "") || strings.HasPrefix(apiStatusOf(err).Message, "admission webhook ")
}

// RefusalReason returns the API server's reason if err is [ErrForbidden]; otherwise it returns "". The reason is the
// same for all objects of a kind.
func RefusalReason(err error) string {
	if !errors.Is(err, ErrForbidden) {
		return ""
	}
	words := apiStatusOf(err).Message
	if _, why, found := strings.Cut(words, " is forbidden: "); found {
		return why
	}
	return words
}

func apiStatusOf(err error) metav1.Status {
	var s apierrors.APIStatus
	if errors.As(err, &s) {
		return s.Status()
	}
	return metav1.Status{}
}

// isNotServed reports whether the kind is missing, not only the object. In this case the response does not have the
// API's own format.
func isNotServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// isTooLarge reports whether the object is too large. It also recognizes the message of etcd, which the API server
// returns as an internal error.
func isTooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || apierrors.HasStatusCause(err, metav1.CauseType(field.ErrorTypeTooLong)) ||
		apiStatusOf(err).Code == http.StatusInternalServerError &&
			(strings.Contains(err.Error(), "request is too large") || strings.Contains(err.Error(), "larger than max"))
}
