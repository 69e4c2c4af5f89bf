package authorizer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/webhook/internal/review"
)

const (
	core    = "/core/v1alpha/webhook"
	asked   = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"secret-name","uid":"alice","resourceAttributes":{"verb":"get","group":"a","resource":"trees","name":"oak"}}}`
	refused = `"status":{"allowed":false,"reason":"missing permission \"a/trees.get\""}`
)

var errDown = errors.New("dial 10.0.0.1")

// fake provides the collaborators of a handler.
type fake struct {
	cfg        Config
	incomplete bool
	allowed    bool
	failing    bool
	question   authz.Query
	// traced is the span of the decision. tracer makes the spans of the handler, or none if it is nil.
	traced  trace.SpanContext
	tracer  trace.TracerProvider
	log     bytes.Buffer
	metrics *prometheus.Registry
}

func (f *fake) options() Options {
	f.metrics = prometheus.NewRegistry()
	return Options{
		Rules: review.NewTrustRules(review.TrustRules{}),
		Registry: func() (*iam.Registry, error) {
			if f.incomplete {
				return nil, errDown
			}
			p := &iamv1alpha1.ProtectedResource{}
			p.Name, p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "trees", "a", "Tree", "trees", []string{"get"}
			return iam.NewRegistry([]*iamv1alpha1.ProtectedResource{p}), nil
		},
		Decide: func(ctx context.Context, q authz.Query) (why authz.Proof, allowed bool, err error) {
			f.traced = trace.SpanContextFromContext(ctx)
			if f.question = q; f.failing {
				return why, true, errDown
			}
			return authz.Proof{Binding: authz.Ref{Namespace: "n", Name: "b"}, Principal: authz.Principal{Kind: authz.User}}, f.allowed, nil
		},
		Log: slog.New(slog.NewJSONHandler(&f.log, nil)), Metrics: f.metrics, Tracer: cmp.Or[trace.TracerProvider](f.tracer, noop.NewTracerProvider()),
		Propagator: propagation.TraceContext{},
	}
}

// post sends a request to a handler, after a change of the request.
func (f *fake) post(t *testing.T, url, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	h, err := newHandler(f.cfg, f.options())
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	if change != nil {
		change(r)
	}
	answer := httptest.NewRecorder()
	h.buildRoutes().ServeHTTP(answer, r)
	return answer
}

func TestHandlerServesThreeURLs(t *testing.T) {
	for url, project := range map[string]string{
		core: "", "/apis/authorization.k8s.io/v1/subjectaccessreviews": "", "/project/v1alpha/projects/p%2Fx/webhook": "p/x",
	} {
		f := &fake{allowed: true}
		answer := f.post(t, url, asked, nil)
		if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"allowed":true,"reason":"allowed by PolicyBinding \"n/b\"`) {
			t.Errorf("%s: %d %s", url, answer.Code, answer.Body)
		}
		if f.question.RequireExists != (project != "") || project != "" && f.question.Name != project || project == "" && f.question.Name != "oak" {
			t.Errorf("%s: got query %+v", url, f.question)
		}
	}
}

func TestHandlerRefusalIsNoOpinionUnlessDenyIsSet(t *testing.T) {
	if answer := (&fake{}).post(t, core, asked, nil); !strings.Contains(answer.Body.String(), refused) {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	deny := Config{ExplicitDeny: true}
	if answer := (&fake{cfg: deny}).post(t, core, asked, nil); !strings.Contains(answer.Body.String(), `"allowed":false,"denied":true`) {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	unknown := strings.Replace(asked, "trees", "stones", 1)
	if answer := (&fake{cfg: deny}).post(t, core, unknown, nil); answer.Code != http.StatusOK || strings.Contains(answer.Body.String(), "denied") {
		t.Errorf("unregistered resource: got %d %s, want no denial", answer.Code, answer.Body)
	}
}

// TestHandlerFailureHasErrorStatus verifies that a failure has no status 200, which the API server would cache.
func TestHandlerFailureHasErrorStatus(t *testing.T) {
	large := strings.Replace(asked, "oak", strings.Repeat("x", maxReview), 1)
	header := func(key, value string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(key, value) } }
	for what, c := range map[string]struct {
		fake   fake
		url    string
		body   string
		change func(*http.Request)
		code   int
	}{
		"malformed":             {fake{}, core, "{", nil, http.StatusBadRequest},
		"empty":                 {fake{}, core, "", nil, http.StatusBadRequest},
		"another media type":    {fake{}, core, asked, header("Content-Type", "application/yaml"), http.StatusUnsupportedMediaType},
		"no media type":         {fake{}, core, asked, header("Content-Type", ""), http.StatusUnsupportedMediaType},
		"compressed":            {fake{}, core, asked, header("Content-Encoding", "gzip"), http.StatusUnsupportedMediaType},
		"too large":             {fake{}, core, large, nil, http.StatusRequestEntityTooLarge},
		"too large, not said":   {fake{}, core, large, func(r *http.Request) { r.ContentLength = -1 }, http.StatusRequestEntityTooLarge},
		"ends early":            {fake{}, core, asked, func(r *http.Request) { r.Body = io.NopCloser(broken{}) }, http.StatusBadRequest},
		"another method":        {fake{}, core, asked, func(r *http.Request) { r.Method = http.MethodGet }, http.StatusMethodNotAllowed},
		"another URL":           {fake{}, "/core", asked, nil, http.StatusNotFound},
		"no certificate":        {fake{cfg: Config{ClientCA: "x", Certificate: "x", Key: "x", ClientNames: []string{"a"}}}, core, asked, nil, http.StatusForbidden},
		"incomplete":            {fake{incomplete: true, allowed: true}, core, asked, nil, http.StatusServiceUnavailable},
		"incomplete, unasked":   {fake{incomplete: true}, core, strings.Replace(asked, "trees", "stones", 1), nil, http.StatusServiceUnavailable},
		"decider fails":         {fake{failing: true}, core, asked, nil, http.StatusServiceUnavailable},
		"decider fails, shadow": {fake{failing: true, cfg: Config{Shadow: true}}, core, asked, nil, http.StatusServiceUnavailable},
	} {
		answer := c.fake.post(t, c.url, c.body, c.change)
		if answer.Code != c.code || strings.Contains(answer.Body.String(), "allowed") || answer.Header().Get("Retry-After") != "" {
			t.Errorf("%s: %d %s %v", what, answer.Code, answer.Body, answer.Header())
		}
		if c.code == http.StatusServiceUnavailable && (strings.Contains(answer.Body.String(), errDown.Error()) || !strings.Contains(c.fake.log.String(), errDown.Error())) {
			t.Errorf("%s: got body %q, log %q; want the cause in the log only", what, answer.Body, c.fake.log.String())
		}
		if c.code == http.StatusMethodNotAllowed && answer.Header().Get("Allow") != http.MethodPost {
			t.Errorf("%s: no header Allow", what)
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestHandlerShadowModeLogsDecision(t *testing.T) {
	f := &fake{cfg: Config{Shadow: true}, allowed: true}
	answer := f.post(t, core, asked, nil)
	if body := answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(body, `"allowed":false`) || strings.Contains(body, "PolicyBinding") {
		t.Errorf("%d %s", answer.Code, body)
	}
	if log := f.log.String(); !strings.Contains(log, `"decision":"allowed"`) || !strings.Contains(log, `"name":"oak"`) || !strings.Contains(log, `"uid":"alice"`) {
		t.Errorf("got log %q", log)
	}
	if n, err := testutil.GatherAndCount(f.metrics, "authz_decisions_total"); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestDecisionLogIsSampled(t *testing.T) {
	f := &fake{}
	f.post(t, core, asked, nil)
	if f.log.Len() > 0 {
		t.Errorf("got log %q", f.log.String())
	}
	f.cfg.DecisionLog = 1
	f.post(t, core, strings.Replace(asked, "oak", strings.Repeat("o", 5000), 1), nil)
	if n := f.log.Len(); n == 0 || n > 2000 {
		t.Errorf("%d bytes are logged", n)
	}
	all, err := f.metrics.Gather()
	for _, family := range all {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if strings.Contains(label.GetValue(), "o"+"oo") || strings.Contains(label.GetValue(), "secret") {
					t.Errorf("metric %s: unexpected label %s", family.GetName(), label)
				}
			}
		}
	}
	if err != nil {
		t.Error(err)
	}
}

func TestConfigRefusesUnauthenticatedAccess(t *testing.T) {
	for what, c := range map[string]struct {
		cfg Config
		ok  bool
	}{
		"nothing":                      {Config{}, true},
		"this machine":                 {Config{Listen: "127.0.0.1:1"}, true},
		"this machine, by another way": {Config{Listen: "[::1]:1"}, true},
		"everybody":                    {Config{Listen: ":1"}, false},
		"a name":                       {Config{Listen: "localhost:1"}, false},
		"everybody, with TLS":          {Config{Listen: ":1", Certificate: "a", Key: "b"}, false},
		"who shows a certificate":      {Config{Listen: ":1", Certificate: "a", Key: "b", ClientCA: "c", ClientNames: []string{"x"}}, true},
		"nobody":                       {Config{Listen: ":1", Certificate: "a", Key: "b", ClientCA: "c"}, false},
		"a certificate without a key":  {Config{Listen: "127.0.0.1:1", Certificate: "a"}, false},
		"a share":                      {Config{DecisionLog: 2}, false},
		"a shadow that denies":         {Config{Shadow: true, ExplicitDeny: true}, false},
	} {
		if err := c.cfg.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestHandlerContinuesTrace verifies that a trace of the API server continues in the decider. No span contains a
// value of the request.
func TestHandlerContinuesTrace(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	f := &fake{allowed: true, tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))}
	f.post(t, core, asked, nil)
	if n := len(spans.Ended()); n > 0 || f.traced.IsValid() {
		t.Errorf("request without a trace: got %d spans", n)
	}
	const id = "0af7651916cd43dd8448eb211c80319c"
	f.post(t, core, asked, func(r *http.Request) { r.Header.Set("Traceparent", "00-"+id+"-b7ad6b7169203331-01") })
	all := spans.Ended()
	if len(all) != 1 || all[0].SpanContext().TraceID().String() != id || f.traced.SpanID() != all[0].SpanContext().SpanID() {
		t.Fatalf("got %d spans, and the decider got %+v", len(all), f.traced)
	}
	if said := fmt.Sprint(all[0].Attributes(), all[0].Name()); strings.Contains(said, "alice") || strings.Contains(said, "secret") || strings.Contains(said, "oak") {
		t.Errorf("the span contains values of the request: %s", said)
	}
}
