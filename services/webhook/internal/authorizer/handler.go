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
	mux.HandleFunc("/core/v1alpha/webhook", h.serveReviews(nowhere))
	mux.HandleFunc("/apis/authorization.k8s.io/v1/subjectaccessreviews", h.serveReviews(nowhere))
	mux.HandleFunc("/project/v1alpha/projects/{project}/webhook", h.serveReviews(func(r *http.Request) string { return r.PathValue("project") }))
	return mux
}

// failure is an HTTP error that is sent instead of an answer.
type failure struct {
	code    int
	message string
}

func (f failure) Error() string { return f.message }

// temporaryError wraps an error for a temporary failure. The message hides the cause, because the API server shows it to users,
// and the cause can contain names and addresses. The log contains it. No Retry-After is sent: the API server would wait
// for it within the user's request.
func temporaryError(err error) error {
	return fmt.Errorf("%w: %w", failure{http.StatusServiceUnavailable, "not known now; see the log of webhook"}, err)
}

// serveReviews returns the handler of a URL. projectOf returns the project in the URL, or "".
func (h *handler) serveReviews(projectOf func(*http.Request) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		ctx, end := h.startTrace(r)
		defer end()
		d := decision{scope: "unknown"}
		version, err := h.reviewRequest(ctx, w, r, projectOf(r), &d)
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
	f, ok := errors.AsType[failure](err)
	if !ok {
		f = failure{http.StatusInternalServerError, "the answer could not be given"}
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

// reviewRequest decodes and decides one review.
func (h *handler) reviewRequest(ctx context.Context, w http.ResponseWriter, r *http.Request, project string, d *decision) (version string, err error) {
	if err := h.checkClient(r); err != nil {
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
		return "", unreadableError(err)
	}
	asked, err := review.Decode(buffer.Bytes())
	if err != nil {
		return "", failure{http.StatusBadRequest, err.Error()}
	}
	d.review = asked
	return asked.Version, h.fillDecision(ctx, project, d)
}

// checkClient returns an error unless the client may send reviews and the request has the expected form.
func (h *handler) checkClient(r *http.Request) error {
	if h.cfg.ClientCA != "" && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0 ||
		!slices.Contains(h.cfg.ClientNames, r.TLS.VerifiedChains[0][0].Subject.CommonName)) {
		return failure{http.StatusForbidden, "this client may not ask: its certificate has none of the names in --client-names"}
	}
	if r.Method != http.MethodPost {
		return failure{http.StatusMethodNotAllowed, "send a SubjectAccessReview by POST"}
	}
	if typ, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || typ != "application/json" || r.Header.Get("Content-Encoding") != "" {
		return failure{http.StatusUnsupportedMediaType, "send application/json"}
	}
	if r.ContentLength > maxReview {
		return failure{http.StatusRequestEntityTooLarge, "this is too large for a SubjectAccessReview"}
	}
	return nil
}

func unreadableError(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return failure{http.StatusRequestEntityTooLarge, "this is too large for a SubjectAccessReview"}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return failure{http.StatusBadRequest, "this ends too early"}
	}
	return failure{http.StatusBadRequest, "this could not be read"}
}

// decision is the result of a review.
type decision struct {
	scope  string
	review *review.Review
	// question is the question of the review. It is empty if none was decided.
	question authz.Query
	// would is the answer by the declared objects. answer is the one that is sent: in shadow mode, no opinion.
	would, answer review.Answer
}

// fillDecision fills in the decision of a review.
func (h *handler) fillDecision(ctx context.Context, project string, d *decision) error {
	registry, err := h.options.Registry()
	if err != nil {
		return temporaryError(err)
	}
	request, err := d.review.Request(h.options.Rules, project)
	if d.scope = request.Scope(); err == nil {
		d.question, err = request.Question(h.options.Rules, registry)
	}
	if err != nil {
		d.would = review.Abstain(err)
	} else if d.would, err = h.askDecider(ctx, d); err != nil {
		return temporaryError(err)
	}
	if d.answer = d.would; h.cfg.Shadow {
		d.answer = review.Answer{Reason: "no opinion: the decision is only logged (--shadow)"}
	}
	return nil
}

// askDecider has the question decided within decisionTimeout.
func (h *handler) askDecider(ctx context.Context, d *decision) (review.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, decisionTimeout)
	defer cancel()
	why, allowed, err := h.options.Decide(ctx, d.question)
	if err != nil || allowed {
		return review.Allow(why), err
	}
	answer := review.Refuse(d.question.Permission)
	answer.Denied = h.cfg.ExplicitDeny
	if err := d.review.Unidentified(h.options.Rules); err != nil {
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
