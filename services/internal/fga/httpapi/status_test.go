package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	fgaerrors "github.com/openfga/openfga/pkg/server/errors"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestErrorCodeSurvivesHTTP encodes each code with OpenFGA's own HTTP encoder and decodes it again.
func TestErrorCodeSurvivesHTTP(t *testing.T) {
	for sent, want := range map[codes.Code]codes.Code{
		codes.Aborted: codes.Aborted, codes.ResourceExhausted: codes.ResourceExhausted, codes.AlreadyExists: codes.AlreadyExists,
		codes.FailedPrecondition: codes.FailedPrecondition, codes.OutOfRange: codes.OutOfRange,
		codes.InvalidArgument: codes.Code(openfgav1.ErrorCode_validation_error),
		codes.Unauthenticated: codes.Code(openfgav1.AuthErrorCode_unauthenticated),
		codes.Unimplemented:   codes.Code(openfgav1.NotFoundErrorCode_unimplemented),
		codes.Unavailable:     codes.Code(openfgav1.InternalErrorCode_unavailable),
		codes.Code(openfgav1.NotFoundErrorCode_store_id_not_found):                  codes.Code(openfgav1.NotFoundErrorCode_store_id_not_found),
		codes.Code(openfgav1.ErrorCode_latest_authorization_model_not_found):        codes.Code(openfgav1.ErrorCode_latest_authorization_model_not_found),
		codes.Code(openfgav1.UnprocessableContentErrorCode_throttled_timeout_error): codes.Code(openfgav1.UnprocessableContentErrorCode_throttled_timeout_error),
		codes.Code(openfgav1.NotFoundErrorCode_undefined_endpoint):                  codes.Unavailable,
		codes.Code(openfgav1.AuthErrorCode_auth_failed_invalid_bearer_token):        codes.Code(openfgav1.AuthErrorCode_auth_failed_invalid_bearer_token),
	} {
		encoded := fgaerrors.NewEncodedError(fgaerrors.ConvertToEncodedErrorCode(status.New(sent, "why")), "why")
		body, err := json.Marshal(encoded.ActualError)
		if err != nil {
			t.Fatal(err)
		}
		err = httpResponse{code: encoded.HTTPStatus(), body: body}.grpcStatusError()
		if status.Code(err) != want || want != codes.Unavailable && status.Convert(err).Message() != "why" {
			t.Errorf("%s: %v, want %s", sent, err, want)
		}
	}
}

func TestHTTPStatusDecidesWithoutOpenFGACode(t *testing.T) {
	for code, want := range map[int]codes.Code{
		400: codes.Unavailable, 401: codes.Unauthenticated, 403: codes.PermissionDenied, 404: codes.Unavailable, 307: codes.Unavailable,
		413: codes.OutOfRange, 429: codes.ResourceExhausted, 502: codes.Unavailable,
	} {
		for _, body := range []string{"", "<html>", `{"code":"teapot","message":"whatever"}`, `{"code":5}`} {
			err := httpResponse{code: code, body: []byte(body)}.grpcStatusError()
			if status.Code(err) != want || !strings.Contains(err.Error(), fmt.Sprint("HTTP status ", code)) || strings.Contains(err.Error(), "whatever") {
				t.Errorf("%d %s: %v, want %s", code, body, err, want)
			}
		}
	}
}

func TestRetryAfterIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			code  int
			after string
			want  time.Duration
		}{
			"seconds": {429, "7", 7 * time.Second}, "a moment": {503, time.Now().UTC().Add(time.Minute).Format(http.TimeFormat), time.Minute},
			"a moment ago": {429, time.Now().UTC().Add(-time.Minute).Format(http.TimeFormat), 0}, "nothing": {429, "", time.Second},
			"nonsense": {429, "soon", time.Second}, "less than nothing": {429, "-5", time.Second}, "beyond all measure": {429, "4000000000", 1 << 30 * time.Second},
			"not at all": {503, "", -1},
		} {
			got := time.Duration(-1)
			for _, detail := range status.Convert(httpResponse{code: test.code, header: http.Header{"Retry-After": {test.after}}}.grpcStatusError()).Details() {
				got = detail.(*errdetails.RetryInfo).GetRetryDelay().AsDuration()
			}
			if got != test.want {
				t.Errorf("%s: %s, want %s", name, got, test.want)
			}
		}
	})
}

func TestUnansweredCallReportsCause(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := noAnswerError(t.Context(), errors.New("no route")); status.Code(err) != codes.Unavailable {
		t.Errorf("the network: %v", err)
	}
	if err := noAnswerError(over, errors.New("no route")); status.Code(err) != codes.Canceled {
		t.Errorf("the caller: %v", err)
	}
}

func TestPathIDsAreValidated(t *testing.T) {
	api := New("http://127.0.0.1:1", nil)
	const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	for _, request := range []any{
		&openfgav1.GetStoreRequest{StoreId: "../x"}, &openfgav1.WriteRequest{}, &openfgav1.ReadAuthorizationModelRequest{StoreId: id, Id: "a/b"},
	} {
		if err := api.Interceptor()(t.Context(), "", request, nil, nil, nil); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%T: %v", request, err)
		}
	}
	if err := api.Interceptor()(t.Context(), "", &openfgav1.UpdateStoreRequest{StoreId: id}, nil, nil, nil); status.Code(err) != codes.Unimplemented {
		t.Errorf("a call that there is not: %v", err)
	}
}
