package kube

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/fault"
)

// What callers branch on, with errors.Is.
var (
	// ErrNotFound means that the object is gone.
	ErrNotFound = errors.New("object not found")
	// ErrConflict means that the object was made, changed or re-created meanwhile. Read it
	// again and decide again; it is marked so that a retry is never counted.
	ErrConflict = errors.New("object was changed meanwhile")
	// ErrTooLarge means that the API server cannot hold the object. It is terminal.
	ErrTooLarge = errors.New("object is too large for the API server")
	// ErrUndeclared means that the CustomResourceDefinition lacks a field that was to be applied. It is marked as unavailable.
	ErrUndeclared = errors.New("the CustomResourceDefinition lacks a field")
	// ErrForbidden means that the service lacks a right, or that somebody's admission refuses. It is
	// marked as unavailable: nothing tells when the right is given.
	ErrForbidden = errors.New("the API server forbids it")
	// ErrTerminating means that nothing can be made in a namespace that is being deleted.
	ErrTerminating = errors.New("the namespace is being deleted")
	// ErrNotServed means that the API server has no such kind (yet). It is marked as unavailable.
	ErrNotServed = errors.New("the API server does not serve this kind: apply the CustomResourceDefinitions in deploy/crd")
)

// classify gives the error of a request its class. Only the API server's
// judgement of the request itself counts against the request.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case notServed(err):
		return fault.Unavailable(fmt.Errorf("%w (%w)", ErrNotServed, err))
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w (%w)", ErrNotFound, err)
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return fault.Unavailable(fmt.Errorf("%w (%w)", ErrConflict, err))
	case tooLarge(err):
		return fault.Terminal(fmt.Errorf("%w (%w)", ErrTooLarge, err))
	case strings.Contains(statusOf(err).Message, "field not declared in schema"):
		return fault.Unavailable(fmt.Errorf("%w (%w)", ErrUndeclared, err))
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("%w (%w)", ErrTerminating, err)
	case apierrors.IsForbidden(err) || denied(err):
		return fault.Unavailable(fmt.Errorf("%w (%w)", ErrForbidden, err))
	}
	switch code := statusOf(err).Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return fault.Unavailable(err)
	default:
		if code >= http.StatusBadRequest && code < http.StatusInternalServerError {
			return err
		}
		return fault.Unavailable(err)
	}
}

// denied tells admission's refusal from a fault of the request: a policy answers Invalid unless told
// otherwise, with a cause that has no type, and a webhook whatever it likes. Neither is for good: a
// policy also refuses while the API server, just started, has not found yet what it refers to.
func denied(err error) bool {
	return apierrors.IsInvalid(err) && apierrors.HasStatusCause(err, "") || strings.HasPrefix(statusOf(err).Message, "admission webhook ")
}

// Refusal is why err is [ErrForbidden], in the API server's words, which are the same for all objects of a kind; else it is empty.
func Refusal(err error) string {
	if !errors.Is(err, ErrForbidden) {
		return ""
	}
	words := statusOf(err).Message
	if _, why, found := strings.Cut(words, " is forbidden: "); found {
		return why
	}
	return words
}

func statusOf(err error) metav1.Status {
	var s apierrors.APIStatus
	if errors.As(err, &s) {
		return s.Status()
	}
	return metav1.Status{}
}

// notServed tells a missing kind from a missing object: the former has no answer in the API's own form.
func notServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// tooLarge also knows etcd's words: the API server passes them on as an internal error.
func tooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) ||
		statusOf(err).Code == http.StatusInternalServerError &&
			(strings.Contains(err.Error(), "request is too large") || strings.Contains(err.Error(), "larger than max"))
}
