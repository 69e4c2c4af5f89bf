package fga

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/entail-dev/entail/services/internal/fault"
)

func TestClassifyErrorCoversEveryCode(t *testing.T) {
	cases := map[codes.Code]struct {
		name        string
		unavailable bool
		is          error
	}{
		codes.Unavailable:       {name: "Unavailable", unavailable: true},
		codes.DeadlineExceeded:  {name: "DeadlineExceeded", unavailable: true, is: ErrTimeout},
		codes.ResourceExhausted: {name: "ResourceExhausted", unavailable: true},
		codes.Internal:          {name: "Internal", unavailable: true},
		codes.Unknown:           {name: "Unknown", unavailable: true},
		codes.Aborted:           {name: "Aborted", unavailable: true},
		codes.Canceled:          {name: "Canceled", unavailable: true},
		codes.Unauthenticated:   {name: "Unauthenticated", unavailable: true},
		codes.PermissionDenied:  {name: "PermissionDenied", unavailable: true},
		codes.InvalidArgument:   {name: "InvalidArgument"},
		codes.Unimplemented:     {name: "Unimplemented", is: ErrUnsupported},
		1010:                    {name: "bearer_token_missing (1010)", unavailable: true},
		2000:                    {name: "validation_error (2000)"},
		2001:                    {name: "authorization_model_not_found (2001)", is: ErrModelNotFound},
		2002:                    {name: "authorization_model_resolution_too_complex (2002)", is: ErrTooComplex},
		2004:                    {name: "cannot_allow_duplicate_tuples_in_one_request (2004)"},
		2017:                    {name: "write_failed_due_to_invalid_input (2017)"},
		2020:                    {name: "latest_authorization_model_not_found (2020)", is: ErrModelNotFound},
		2053:                    {name: "exceeded_entity_limit (2053)"},
		2056:                    {name: "invalid_authorization_model (2056)"},
		2058:                    {name: "cancelled (2058)", unavailable: true},
		3500:                    {name: "code 3500", unavailable: true, is: ErrTimeout},
		4000:                    {name: "internal_error (4000)", unavailable: true},
		4004:                    {name: "deadline_exceeded (4004)", unavailable: true, is: ErrTimeout},
		5002:                    {name: "store_id_not_found (5002)", is: ErrStoreNotFound},
		5004:                    {name: "unimplemented (5004)", is: ErrUnsupported},
		9999:                    {name: "code 9999"},
	}
	for code, tc := range cases {
		err := classifyError(t.Context(), status.Error(code, "because"))
		if fault.IsUnavailable(err) != tc.unavailable {
			t.Errorf("%d: unavailable is %v; want %v", code, fault.IsUnavailable(err), tc.unavailable)
		}
		if want := "OpenFGA answers " + tc.name + ": because"; err.Error() != want {
			t.Errorf("%d: %q; want %q", code, err, want)
		}
		for _, sentinel := range []error{ErrModelNotFound, ErrStoreNotFound, ErrUnsupported, ErrTooComplex, ErrTimeout} {
			if got := errors.Is(err, sentinel); got != (sentinel == tc.is) {
				t.Errorf("%d is %v: %v", code, sentinel, got)
			}
		}
	}
}

func TestLongErrorTextIsTruncatedAtRune(t *testing.T) {
	err := classifyError(t.Context(), status.Error(codes.InvalidArgument, strings.Repeat("ü", maxMessage)))
	if len(err.Error()) > maxMessage+100 || strings.ContainsRune(err.Error(), '\uFFFD') {
		t.Errorf("got %d bytes: %q", len(err.Error()), err)
	}
}
