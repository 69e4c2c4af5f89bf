package admission

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func TestWebhookFailurePolicyIgnoreAllows(t *testing.T) {
	ignore, scope := admissionregistrationv1.Ignore, admissionregistrationv1.ClusterScope
	webhook := Webhook{ValidatingWebhook: admissionregistrationv1.ValidatingWebhook{
		FailurePolicy: &ignore, Rules: []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{Scope: &scope}}},
	}}
	for name, c := range map[string]struct {
		err     error
		allowed bool
	}{
		"allowed": {nil, true}, "cannot be judged": {errors.New("no time"), true}, "refused": {RefusalError("no"), false},
	} {
		t.Run(name, func(t *testing.T) {
			webhook.Validate = func(context.Context, *admissionv1.AdmissionRequest) error { return c.err }
			w := httptest.NewRecorder()
			newServer(t, Config{}, nil).webhookHandler(webhook).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(review(t, nil))))
			var got admissionv1.AdmissionReview
			if err := json.NewDecoder(w.Body).Decode(&got); err != nil || got.Response.Allowed != c.allowed {
				t.Errorf("%v, %+v", err, got.Response)
			}
		})
	}
	if setWebhookDefaults(&webhook.ValidatingWebhook); *webhook.FailurePolicy != ignore || *webhook.Rules[0].Scope != scope {
		t.Errorf("registered is %+v", webhook.ValidatingWebhook)
	}
	plain := &admissionregistrationv1.ValidatingWebhook{Rules: make([]admissionregistrationv1.RuleWithOperations, 1)}
	if setWebhookDefaults(plain); *plain.FailurePolicy != admissionregistrationv1.Fail || *plain.Rules[0].Scope != admissionregistrationv1.NamespacedScope {
		t.Errorf("webhook without options: registered %+v", plain)
	}
}

func TestRequestSlotsLimitClusterScopedRequests(t *testing.T) {
	s, held := newServer(t, Config{}, nil), make(chan struct{})
	waiting := make(chan struct{}, 2*maxReviewsPerOwner)
	webhook := Webhook{Validate: func(_ context.Context, r *admissionv1.AdmissionRequest) error {
		if r.UserInfo.Username == "many" {
			waiting <- struct{}{}
			<-held
		}
		return nil
	}}
	ask := func(user string) bool {
		r := &admissionv1.AdmissionRequest{}
		r.UserInfo.Username = user
		return s.reviewRequest(t.Context(), webhook, r).Allowed
	}
	done := make(chan bool)
	for range 2 * maxReviewsPerOwner {
		go func() { done <- ask("many") }()
	}
	for range maxReviewsPerOwner {
		<-waiting
	}
	if !ask("another") {
		t.Error("another user is kept out")
	}
	close(held)
	for range 2 * maxReviewsPerOwner {
		<-done
	}
}
