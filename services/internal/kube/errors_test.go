package kube

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/entail-dev/entail/services/internal/fault"
)

func TestClassifyErrorCoversEveryAnswer(t *testing.T) {
	stores := schema.GroupResource{Group: "core.platform-mesh.io", Resource: "stores"}
	kind := schema.GroupKind{Group: stores.Group, Kind: "Store"}
	webhook := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadRequest, Message: `admission webhook "x" denied the request: no`}}
	policy := apierrors.NewInvalid(kind, "demo", nil)
	policy.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "ValidatingAdmissionPolicy 'x' denied request: failed to configure policy"}}
	refused := errors.New("dial tcp 127.0.0.1:1: connect: connection refused")
	cases := map[string]struct {
		err                   error
		is                    error
		unavailable, terminal bool
	}{
		"none":               {},
		"not found":          {err: apierrors.NewNotFound(stores, "demo"), is: ErrNotFound},
		"not served":         {err: apierrors.NewGenericServerResponse(http.StatusNotFound, "get", stores, "demo", "404 page not found", 0, true), is: ErrNotServed, unavailable: true},
		"conflict":           {err: apierrors.NewConflict(stores, "demo", errors.New("old")), is: ErrConflict, unavailable: true},
		"made meanwhile":     {err: apierrors.NewAlreadyExists(stores, "demo"), is: ErrConflict, unavailable: true},
		"too large":          {err: apierrors.NewRequestEntityTooLargeError("3 MB"), is: ErrTooLarge, terminal: true},
		"too large for etcd": {err: apierrors.NewInternalError(errors.New("etcdserver: request is too large")), is: ErrTooLarge, terminal: true},
		"too many bytes":     {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Store"}, "s", field.ErrorList{field.TooLong(field.NewPath("metadata", "annotations"), "", 1)}), is: ErrTooLarge, terminal: true},
		"over etcd's limit":  {err: apierrors.NewInternalError(errors.New("rpc error: trying to send message larger than max")), is: ErrTooLarge, terminal: true},
		"invalid":            {err: apierrors.NewInvalid(kind, "demo", field.ErrorList{field.Required(field.NewPath("spec"), "")})},
		"denied by policy":   {err: policy, is: ErrForbidden, unavailable: true},
		"denied by webhook":  {err: webhook, is: ErrForbidden, unavailable: true},
		"bad request":        {err: apierrors.NewBadRequest("no")},
		"forbidden":          {err: apierrors.NewForbidden(stores, "demo", errors.New("no")), is: ErrForbidden, unavailable: true},
		"unauthorized":       {err: apierrors.NewUnauthorized("no"), unavailable: true},
		"too many requests":  {err: apierrors.NewTooManyRequests("later", 1), unavailable: true},
		"internal":           {err: apierrors.NewInternalError(errors.New("boom")), unavailable: true},
		"timeout":            {err: apierrors.NewServerTimeout(stores, "get", 1), unavailable: true},
		"service away":       {err: apierrors.NewServiceUnavailable("away"), unavailable: true},
		"server away":        {err: refused, unavailable: true},
	}
	for name, tc := range cases {
		err := classifyError(tc.err)
		if tc.err != nil {
			err = fmt.Errorf("doing something: %w", err)
		}
		if (err == nil) != (tc.err == nil) || fault.IsUnavailable(err) != tc.unavailable || fault.IsTerminal(err) != tc.terminal {
			t.Errorf("%s: got %v, unavailable %v, terminal %v", name, err, fault.IsUnavailable(err), fault.IsTerminal(err))
		}
		for _, sentinel := range []error{ErrNotFound, ErrNotServed, ErrConflict, ErrTooLarge, ErrForbidden} {
			if errors.Is(err, sentinel) != (sentinel == tc.is) {
				t.Errorf("%s: is %v: %v", name, sentinel, errors.Is(err, sentinel))
			}
		}
	}
}
