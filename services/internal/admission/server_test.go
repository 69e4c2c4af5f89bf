package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/entail-dev/entail/services/internal/bootclock"
)

func newServer(t *testing.T, cfg Config, edit func(*Options)) *Server {
	t.Helper()
	cfg.Listen = "127.0.0.1:0"
	o := Options{Name: "test", Kube: &rest.Config{Host: "127.0.0.1:1"}, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()}
	if edit != nil {
		edit(&o)
	}
	s, err := New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	s.enforcedSince = time.Now().Add(-time.Hour)
	s.clock.recordDate(time.Now(), bootclock.Now())
	t.Cleanup(func() { _ = s.listener.Close() })
	return s
}

func review(t *testing.T, edit func(*admissionv1.AdmissionReview)) string {
	t.Helper()
	r := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &admissionv1.AdmissionRequest{UID: "u"},
	}
	if edit != nil {
		edit(r)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestHandlerRefusesFailedValidation(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		code    int32
		words   string
		outcome string
	}{
		"allowed": {nil, 0, "", "allowed"},
		"refused": {RefusalError("not %s", "you"), http.StatusForbidden, "not you", "refused"},
		"an invalid field": {
			InvalidError(&admissionv1.AdmissionRequest{Name: "demo", Kind: metav1.GroupVersionKind{Group: "g.dev", Kind: "Store"}},
				field.ErrorList{field.Invalid(field.NewPath("spec", "coreModule"), field.OmitValueType{}, "line 5: syntax error")}),
			http.StatusUnprocessableEntity, `Store.g.dev "demo" is invalid: spec.coreModule: Invalid value: line 5: syntax error`, "refused",
		},
		"cannot be judged":   {errors.New("secret detail"), http.StatusServiceUnavailable, "try again", "failed"},
		"took too long":      {context.DeadlineExceeded, http.StatusServiceUnavailable, "try again", "failed"},
		"a refusal, wrapped": {errors.Join(RefusalError("no")), http.StatusForbidden, "no", "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, Config{}, nil)
			h := s.webhookHandler(Webhook{Validate: func(context.Context, *admissionv1.AdmissionRequest) error { return c.err }})
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(review(t, nil))))
			var got admissionv1.AdmissionReview
			if err := json.NewDecoder(w.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if got.Kind != "AdmissionReview" || got.Request != nil || got.Response.UID != "u" || got.Response.Allowed != (c.err == nil) {
				t.Errorf("answered %+v", got)
			}
			if r := got.Response.Result; r != nil && (r.Code != c.code || !strings.Contains(r.Message, c.words) || strings.Contains(r.Message, "detail")) {
				t.Errorf("answered %+v", r)
			}
			if r := got.Response.Result; c.code == http.StatusUnprocessableEntity &&
				(r.Reason != metav1.StatusReasonInvalid || len(r.Details.Causes) != 1 || r.Details.Causes[0].Field != "spec.coreModule") {
				t.Errorf("got %+v, want the path of the field", r)
			}
			if testutil.ToFloat64(s.metrics.reviews.WithLabelValues("", c.outcome)) != 1 {
				t.Errorf("not counted as %s", c.outcome)
			}
		})
	}
}

func TestHandlerRejectsInvalidReview(t *testing.T) {
	s := newServer(t, Config{}, nil)
	h := http.MaxBytesHandler(s.webhookHandler(Webhook{Validate: func(context.Context, *admissionv1.AdmissionRequest) error {
		t.Error("it was judged")
		return nil
	}}), maxReviewBytes)
	for name, body := range map[string]string{
		"nothing": "", "no JSON": "{", "no request": review(t, func(r *admissionv1.AdmissionReview) { r.Request = nil }),
		"another version": review(t, func(r *admissionv1.AdmissionReview) { r.APIVersion = "admission.k8s.io/v1beta1" }),
		"too much":        review(t, nil)[:10] + strings.Repeat(" ", maxReviewBytes) + review(t, nil)[10:],
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
			if w.Code != http.StatusBadRequest {
				t.Errorf("answered %d: %s", w.Code, w.Body)
			}
		})
	}
}

func TestRequestSlotsBoundConcurrency(t *testing.T) {
	s := newServer(t, Config{}, nil)
	for i := range maxReviews {
		if _, err := s.slots.Acquire(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.validateRequest(ctx, Webhook{}, &admissionv1.AdmissionRequest{Namespace: "other"}); err == nil {
		t.Error("it was judged")
	}
}

func TestValidateRequestRefusesBeforeRegistrationIsEffective(t *testing.T) {
	s := newServer(t, Config{}, nil)
	webhook := Webhook{Validate: func(context.Context, *admissionv1.AdmissionRequest) error { return nil }}
	soon, err := s.nextEffectiveTime()
	if err != nil {
		t.Fatal(err)
	}
	for name, since := range map[string]time.Time{"it is not known": {}, "it is about to learn": soon} {
		s.enforcedSince = since
		if err := s.validateRequest(t.Context(), webhook, &admissionv1.AdmissionRequest{}); err == nil || s.RegistrationErr() == nil {
			t.Errorf("%s: it is allowed", name)
		}
	}
	if soon.Nanosecond() != 0 {
		t.Errorf("soon is %s", soon)
	}
}

func TestEnforcedSinceRestartsAfterRemovalOrChange(t *testing.T) {
	s := newServer(t, Config{}, func(o *Options) { o.Webhooks = make([]Webhook, 1) })
	made, at := time.Now().Add(-time.Hour).Truncate(time.Second), time.Now().Truncate(time.Second)
	ignore := admissionregistrationv1.Ignore
	for name, c := range map[string]struct {
		edit func(*admissionregistrationv1.ValidatingWebhookConfiguration)
		kept bool
	}{
		"nothing": {func(*admissionregistrationv1.ValidatingWebhookConfiguration) {}, true},
		"where it is asked": {func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].ClientConfig.CABundle = []byte("x")
		}, true},
		"what is refused": {func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Webhooks[0].FailurePolicy = &ignore }, false},
		"where it asks": {func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}, false},
		"a webhook less": {func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Webhooks = nil }, false},
		"a clock that is ahead": {func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Annotations[enforcedSinceAnnotation] = at.Add(time.Hour).Format(time.RFC3339)
		}, false},
		"it says nothing": {func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Annotations = nil }, false},
		"it was made anew as it is": {func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.CreationTimestamp.Time = at.Add(time.Second)
		}, false},
	} {
		is := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: make([]admissionregistrationv1.ValidatingWebhook, 1)}
		is.CreationTimestamp.Time, is.Annotations = made, map[string]string{enforcedSinceAnnotation: at.Format(time.RFC3339)}
		c.edit(is)
		got := s.recordedEnforcedSince(is, make([]admissionregistrationv1.ValidatingWebhook, 1), at.Add(time.Minute))
		if got.IsZero() == c.kept || c.kept && !got.Equal(at) {
			t.Errorf("%s: it is %s", name, got)
		}
	}
}

func TestRequestSlotsAreFairBetweenNamespaces(t *testing.T) {
	s := newServer(t, Config{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	busy := make(chan error, maxReviews)
	entered := make(chan struct{}, maxReviews)
	webhook := Webhook{Validate: func(ctx context.Context, r *admissionv1.AdmissionRequest) error {
		if r.Namespace == "busy" {
			entered <- struct{}{}
			<-ctx.Done()
		}
		return nil
	}}
	for range 2 * maxReviews {
		go func() { busy <- s.validateRequest(ctx, webhook, &admissionv1.AdmissionRequest{Namespace: "busy"}) }()
	}
	for range maxReviewsPerOwner {
		<-entered
	}
	if err := s.validateRequest(t.Context(), webhook, &admissionv1.AdmissionRequest{Namespace: "quiet"}); err != nil {
		t.Error(err)
	}
	cancel()
	for range 2 * maxReviews {
		<-busy
	}
	for i := range maxReviews {
		if _, err := s.slots.Acquire(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
}

// unreadableBody is a body that must not be read.
type unreadableBody struct{ t *testing.T }

func (u unreadableBody) Read([]byte) (int, error) {
	u.t.Error("it is read")
	return 0, io.EOF
}

func TestRouterAcceptsOnlyAPIServer(t *testing.T) {
	judged := 0
	s := newServer(t, Config{URL: "https://here:1"}, func(o *Options) {
		o.Webhooks = []Webhook{{Validate: func(context.Context, *admissionv1.AdmissionRequest) error { judged++; return nil }}}
		o.Webhooks[0].Name = "w"
	})
	h, now := s.newWebhookRouter(), time.Now()
	ask := func(method, path string, body io.Reader) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, body))
		return w.Code
	}
	if code := ask(http.MethodPost, "/w", unreadableBody{t}); code != http.StatusNotFound {
		t.Errorf("without a certificate it answers %d", code)
	}
	c, err := s.loadOrRenewCertificate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.serving.Store(c)
	another, err := newCertificate("here", certificateValidity, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"nothing": "/", "the name": "/w", "no caller": "//w", "another caller": another.webhookPath("w", now), "another webhook": c.webhookPath("x", now),
		"no webhook": c.webhookPath("", now), "one letter less": c.webhookPath("w", now)[2:], "more": c.webhookPath("w", now) + "/w", "an old one": c.webhookPath("w", now.Add(-2*pathPeriod)),
	} {
		if code := ask(http.MethodPost, "/"+strings.TrimPrefix(path, "/"), unreadableBody{t}); code != http.StatusNotFound {
			t.Errorf("%s: it answers %d", name, code)
		}
	}
	if code := ask(http.MethodGet, c.webhookPath("w", now), unreadableBody{t}); code != http.StatusNotFound || judged != 0 {
		t.Errorf("it answers %d, and judged %d", code, judged)
	}
	renewed, err := newCertificate("here", certificateValidity, c)
	if err != nil {
		t.Fatal(err)
	}
	s.next.Store(another)
	for _, path := range []string{
		c.webhookPath("w", now), c.webhookPath("w", now.Add(-pathPeriod)), c.webhookPath("w", now.Add(pathPeriod)), renewed.webhookPath("w", now), another.webhookPath("w", now),
	} {
		if code := ask(http.MethodPost, path, strings.NewReader(review(t, nil))); code != http.StatusOK {
			t.Errorf("the API server is answered %d", code)
		}
	}
	if judged != 5 {
		t.Errorf("it judged %d", judged)
	}
}

func TestConfigValidateRefusesInvalidSettings(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		good bool
		host string
	}{
		"none":              {Config{}, true, ""},
		"a URL":             {Config{URL: "https://10.0.0.1:9443"}, true, "10.0.0.1"},
		"with a slash":      {Config{URL: "https://host:9443/"}, true, "host"},
		"a Service":         {Config{Service: "ns/name"}, true, "name.ns.svc"},
		"both":              {Config{URL: "https://host:1", Service: "ns/name"}, false, "name.ns.svc"},
		"no TLS":            {Config{URL: "http://host:1"}, false, ""},
		"a path":            {Config{URL: "https://host/x"}, false, ""},
		"a query":           {Config{URL: "https://host?x"}, false, ""},
		"a password":        {Config{URL: "https://a:b@host"}, false, ""},
		"half a Service":    {Config{Service: "name"}, false, ""},
		"a Service of none": {Config{Service: "/name"}, false, ""},
	} {
		if err := c.cfg.Validate(); (err == nil) != c.good || c.cfg.hostName() != c.host {
			t.Errorf("%s: %v, host %q", name, err, c.cfg.hostName())
		}
	}
}

func TestCertificateIsRenewedAndOldAuthorityKept(t *testing.T) {
	const host, hours = "here.ns.svc", 30 * time.Hour
	first, err := newCertificate(host, hours, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, c := range map[string]struct {
		host string
		at   time.Time
		want bool
	}{
		"now": {host, now, true}, "of another host": {"there.ns.svc", now, false},
		"long before its end": {host, now.Add(hours / 2), true}, "before its end": {host, now.Add(hours * 3 / 4), false},
	} {
		if first.isValidFor(c.host, c.at, hours) != c.want {
			t.Errorf("%s: want %v", name, c.want)
		}
	}
	bundle, made := first.authorityBundle([]byte("nonsense"), now), []*servingCertificate{first}
	for range 4 {
		next, err := newCertificate(host, hours, made[len(made)-1])
		if err != nil {
			t.Fatal(err)
		}
		bundle, made = next.authorityBundle(bundle, now), append(made, next)
		if again := next.authorityBundle(bundle, now); !bytes.Equal(again, bundle) {
			t.Error("the bundle changes though nothing did")
		}
	}
	trusted, err := cert.ParseCertsPEM(bundle)
	if err != nil || len(trusted) != maxAuthorities || !trusted[0].Equal(made[4].authority) {
		t.Errorf("%d are trusted, %v", len(trusted), err)
	}
	if later, _ := cert.ParseCertsPEM(made[4].authorityBundle(bundle, now.Add(2*hours))); len(later) != 1 {
		t.Errorf("%d are trusted when all have expired", len(later))
	}
}

func TestRegistrationErrBeforeRegistration(t *testing.T) {
	s := newServer(t, Config{URL: "https://here:1"}, nil)
	if err := s.RegistrationErr(); err == nil {
		t.Error("they are")
	}
	if err := s.refreshRegistrationOnce(t.Context()); err == nil {
		t.Error("registration succeeded without an API server")
	}
}

// The alert uses a rate, which needs the counter before its first increase.
func TestFailuresAreCountedFromZero(t *testing.T) {
	s := newServer(t, Config{}, func(o *Options) {
		for _, name := range []string{"a", "b"} {
			webhook := Webhook{}
			webhook.Name = name
			o.Webhooks = append(o.Webhooks, webhook)
		}
	})
	if n := testutil.CollectAndCount(s.metrics.reviews); n != 2 {
		t.Errorf("%d webhooks have a count", n)
	}
}
