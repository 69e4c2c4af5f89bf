package authorizer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/webhook/internal/review"
)

// maxKept bounds the buffers that are reused.
const maxKept = 64 << 10

// handler answers reviews.
type handler struct {
	cfg     Config
	options Options
	metrics *metrics
	tracer  trace.Tracer
	buffers sync.Pool
	// told limits warnings to one per second, because every request fails while the state is unknown.
	told rate.Sometimes
}

func newHandler(cfg Config, o Options) (*handler, error) {
	metrics, err := newMetrics(o.Metrics)
	h := &handler{cfg: cfg, options: o, metrics: metrics, tracer: o.Tracer.Tracer("authorizer"), told: rate.Sometimes{Interval: time.Second}}
	h.buffers.New = func() any { return new(bytes.Buffer) }
	if cfg.Shadow && cfg.DecisionLog == 0 {
		h.cfg.DecisionLog = 1
	}
	return h, err
}

func (h *handler) buildRoutes() http.Handler {
	mux := http.NewServeMux()
	nowhere := func(*http.Request) string { return "" }
	mux.HandleFunc("/core/v1alpha/webhook", h.reviewHandlerFor(nowhere))
	mux.HandleFunc("/apis/authorization.k8s.io/v1/subjectaccessreviews", h.reviewHandlerFor(nowhere))
	mux.HandleFunc("/project/v1alpha/projects/{project}/webhook", h.reviewHandlerFor(func(r *http.Request) string { return r.PathValue("project") }))
	return mux
}

// httpError is an HTTP error that is sent instead of an answer.
type httpError struct {
	code    int
	message string
}

func (f httpError) Error() string { return f.message }

// temporaryError wraps an error for a temporary failure. The message hides the cause, because the API server shows it to users,
// and the cause can contain names and addresses. The log contains it. No Retry-After is sent: the API server would wait
// for it within the user's request.
func temporaryError(err error) error {
	return fmt.Errorf("%w: %w", httpError{http.StatusServiceUnavailable, "not known now; see the log of webhook"}, err)
}

// reviewHandlerFor returns the handler of a URL. projectOf returns the project in the URL, or "".
func (h *handler) reviewHandlerFor(projectOf func(*http.Request) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		ctx, end := h.startTrace(r)
		defer end()
		d := reviewDecision{scope: "unknown"}
		version, err := h.decodeAndDecide(ctx, w, r, projectOf(r), &d)
		var body []byte
		if err == nil {
			body, err = d.answer.Encode(version)
		}
		h.metrics.observeDecision(&d, err, time.Since(began))
		if err != nil {
			h.writeFailure(ctx, w, err)
			return
		}
		h.logDecision(ctx, &d)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) //nolint:gosec // JSON is not rendered by a browser. A client that is gone needs no answer.
	}
}

func (h *handler) writeFailure(ctx context.Context, w http.ResponseWriter, err error) {
	f, ok := errors.AsType[httpError](err)
	if !ok {
		f = httpError{http.StatusInternalServerError, "the answer could not be given"}
	}
	if f.code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	level := slog.LevelDebug
	if f.code >= http.StatusInternalServerError {
		h.told.Do(func() { level = slog.LevelWarn })
	}
	h.options.Log.Log(ctx, level, "a review was not answered", slog.Int("code", f.code), slog.Any("error", err))
	http.Error(w, f.message, f.code)
}

// decodeAndDecide decodes and decides one review.
func (h *handler) decodeAndDecide(ctx context.Context, w http.ResponseWriter, r *http.Request, project string, d *reviewDecision) (version string, err error) {
	if err := h.checkClientAndRequest(r); err != nil {
		return "", err
	}
	buffer, _ := h.buffers.Get().(*bytes.Buffer)
	defer func() {
		if buffer.Cap() <= maxKept {
			buffer.Reset()
			h.buffers.Put(buffer)
		}
	}()
	if _, err := buffer.ReadFrom(http.MaxBytesReader(w, r.Body, maxReview)); err != nil {
		return "", bodyReadFailure(err)
	}
	asked, err := review.Decode(buffer.Bytes())
	if err != nil {
		return "", httpError{http.StatusBadRequest, err.Error()}
	}
	d.review = asked
	return asked.Version, h.decideReview(ctx, project, d)
}

// checkClientAndRequest returns an error unless the client may send reviews and the request has the expected form.
func (h *handler) checkClientAndRequest(r *http.Request) error {
	if h.cfg.ClientCA != "" && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0 ||
		!slices.Contains(h.cfg.ClientNames, r.TLS.VerifiedChains[0][0].Subject.CommonName)) {
		return httpError{http.StatusForbidden, "this client may not ask: its certificate has none of the names in --client-names"}
	}
	if r.Method != http.MethodPost {
		return httpError{http.StatusMethodNotAllowed, "send a SubjectAccessReview by POST"}
	}
	if typ, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || typ != "application/json" || r.Header.Get("Content-Encoding") != "" {
		return httpError{http.StatusUnsupportedMediaType, "send application/json"}
	}
	if r.ContentLength > maxReview {
		return httpError{http.StatusRequestEntityTooLarge, "the request is too large for a SubjectAccessReview"}
	}
	return nil
}

func bodyReadFailure(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return httpError{http.StatusRequestEntityTooLarge, "the request is too large for a SubjectAccessReview"}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return httpError{http.StatusBadRequest, "the request ends too early"}
	}
	return httpError{http.StatusBadRequest, "the request could not be read"}
}

// reviewDecision is the result of a review.
type reviewDecision struct {
	scope  string
	review *review.Review
	// question is the question of the review. It is empty if none was decided.
	question authz.Query
	// would is the answer by the declared objects. answer is the one that is sent: in shadow mode, no opinion.
	would, answer review.Answer
}

// decideReview fills in the decision of a review.
func (h *handler) decideReview(ctx context.Context, project string, d *reviewDecision) error {
	registry, err := h.options.Registry()
	if err != nil {
		return temporaryError(err)
	}
	request, err := d.review.ToAccessRequest(h.options.Rules, project)
	if d.scope = request.ScopeLabel(); err == nil {
		d.question, err = request.ToQuery(h.options.Rules, registry)
	}
	if err != nil {
		d.would = review.NoOpinionAnswer(err)
	} else if d.would, err = h.decideWithTimeout(ctx, d); err != nil {
		return temporaryError(err)
	}
	if d.answer = d.would; h.cfg.Shadow {
		d.answer = review.Answer{Reason: "no opinion: the decision is only logged (--shadow)"}
	}
	return nil
}

// decideWithTimeout has the question decided within decisionTimeout.
func (h *handler) decideWithTimeout(ctx context.Context, d *reviewDecision) (review.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, decisionTimeout)
	defer cancel()
	why, allowed, err := h.options.Decide(ctx, d.question)
	if err != nil || allowed {
		return review.AllowedAnswer(why), err
	}
	answer := review.MissingPermissionAnswer(d.question.Permission)
	answer.Denied = h.cfg.ExplicitDeny
	if err := d.review.UnidentifiedUserErr(h.options.Rules); err != nil {
		answer.EvaluationError = err.Error()
	}
	return answer, nil
}

// startTrace starts a span if the request has a Traceparent header.
func (h *handler) startTrace(r *http.Request) (context.Context, func()) {
	ctx := r.Context()
	if r.Header.Get("Traceparent") == "" {
		return ctx, func() {}
	}
	ctx = h.options.Propagator.Extract(ctx, propagation.HeaderCarrier(r.Header))
	ctx, span := h.tracer.Start(ctx, "SubjectAccessReview", trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.route", r.Pattern)))
	return ctx, func() { span.End() }
}
