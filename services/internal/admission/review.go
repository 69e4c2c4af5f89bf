package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateFunc decides a request. nil allows the request, and [RefusalError] refuses it. Any other error means that
// the request cannot be checked now; then the failure policy of the webhook decides.
type ValidateFunc func(ctx context.Context, request *admissionv1.AdmissionRequest) error

// refusalError is the error of [RefusalError], for the author of the request.
type refusalError struct{ status metav1.Status }

func (r refusalError) Error() string { return r.status.Message }

// RefusalError returns the error with which a [ValidateFunc] refuses a request. The text must contain the reason and
// the remedy.
func RefusalError(format string, args ...any) error {
	return refusalError{metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: fmt.Sprintf(format, args...)}}
}

// InvalidError returns the error with which a webhook refuses an object because of its fields. The answer has the code
// 422 and the path of each field.
func InvalidError(request *admissionv1.AdmissionRequest, fields field.ErrorList) error {
	return refusalError{apierrors.NewInvalid(schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}, request.Name, fields).ErrStatus}
}

// webhookHandler returns the HTTP handler of a webhook.
func (s *Server) webhookHandler(webhook Webhook) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, "this is not an AdmissionReview", http.StatusBadRequest)
			return
		}
		if review.Request == nil || review.GroupVersionKind() != admissionv1.SchemeGroupVersion.WithKind("AdmissionReview") {
			http.Error(w, "this is not a request for a review of "+admissionv1.SchemeGroupVersion.String(), http.StatusBadRequest)
			return
		}
		review.Response = s.reviewRequest(r.Context(), webhook, review.Request)
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // Without an answer, the API server applies the failure policy.
	})
}

func (s *Server) reviewRequest(ctx context.Context, webhook Webhook, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, decisionTimeout)
	defer cancel()
	response := &admissionv1.AdmissionResponse{UID: request.UID}
	err := s.validateRequest(ctx, webhook, request)
	refused, judged := errors.AsType[refusalError](err)
	outcome := "allowed"
	switch {
	case err == nil:
		response.Allowed = true
	case judged:
		outcome = "refused"
		response.Result = &refused.status
	case webhook.FailurePolicy != nil && *webhook.FailurePolicy == admissionregistrationv1.Ignore:
		outcome, response.Allowed = "passed", true
		s.options.Log.WarnContext(ctx, "a request could not be judged, and passes", slog.String("webhook", webhook.Name), slog.Any("error", err))
	default:
		outcome = failed
		s.options.Log.WarnContext(ctx, "a request could not be judged, and is refused", slog.String("webhook", webhook.Name), slog.Any("error", err))
		response.Result = &metav1.Status{
			Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
			Message: "this request cannot be checked now; try again; the log of " + s.options.Name + " gives the reason, and without " +
				"ValidatingWebhookConfiguration " + s.options.Name + " nothing is checked",
		}
	}
	s.metrics.reviews.WithLabelValues(webhook.Name, outcome).Inc()
	s.metrics.seconds.WithLabelValues(webhook.Name).Observe(time.Since(began).Seconds())
	return response
}

func (s *Server) validateRequest(ctx context.Context, webhook Webhook, request *admissionv1.AdmissionRequest) error {
	if _, err := s.EnforcedSince(); err != nil {
		// Objects that were written before that time count as not checked, so this request is refused.
		return err
	}
	release, err := s.slots.Acquire(ctx, cmp.Or(request.Namespace, "user "+request.UserInfo.Username))
	if err != nil {
		return err
	}
	defer release()
	return webhook.Validate(ctx, request)
}
