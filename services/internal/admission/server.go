package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/limiter"
)

// Bounds of each server.
const (
	// maxReviewBytes bounds a request in bytes. A request holds two states of an object of maximum size and the user info.
	maxReviewBytes = 8 << 20
	maxHeader      = 64 << 10
	// webhookTimeout bounds the wait of the API server. decisionTimeout bounds the time for one decision.
	webhookTimeout  = 5 * time.Second
	decisionTimeout = 4 * time.Second
	readTimeout     = 10 * time.Second
	writeTimeout    = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 5 * time.Second
)

// maxReviews bounds the concurrent requests. maxReviewsPerOwner bounds those of a single busy namespace, or of a single
// user for cluster-scoped objects.
const (
	maxReviews         = 64
	maxReviewsPerOwner = 8
)

// newRequestSlots limits concurrent requests. A namespace gets another slot only while it holds less than an eighth of
// the free ones. A single busy namespace thus gets eight, and fewer if others are busy too. Some slots always remain
// for a namespace that holds none.
func newRequestSlots() *limiter.ConcurrencyLimiter {
	return limiter.New(maxReviews, func(held, free int) bool { return held*maxReviewsPerOwner < free })
}

// Webhook configures one webhook and its judge.
type Webhook struct {
	// ValidatingWebhook holds Name, Rules, NamespaceSelector and MatchConditions. Set FailurePolicy to allow requests
	// that cannot be checked. The server sets the other fields.
	admissionregistrationv1.ValidatingWebhook
	Validate ValidateFunc
	// Scope replaces a fixed NamespaceSelector.
	Scope NamespaceScope
	// RulesFunc replaces fixed Rules and MatchConditions.
	RulesFunc WebhookRulesFunc
}

// WebhookRulesFunc returns the rules and conditions to register. Its arguments are the registered ones, which are empty
// at first. A change of these rules does not reset [Server.EnforcedSince].
type WebhookRulesFunc func(
	ctx context.Context, rules []admissionregistrationv1.RuleWithOperations, conditions []admissionregistrationv1.MatchCondition,
) ([]admissionregistrationv1.RuleWithOperations, []admissionregistrationv1.MatchCondition)

// NamespaceScope selects the namespaces whose requests are checked.
type NamespaceScope interface {
	// DesiredSelector returns the selector to register. The argument is the registered selector, or nil at first.
	DesiredSelector(ctx context.Context, is *metav1.LabelSelector) (*metav1.LabelSelector, error)
	// RecordRegistered receives the selector that is now registered.
	RecordRegistered(selector *metav1.LabelSelector)
}

// Options configures a [Server]. All fields are required, except that Namespace is required only with
// [Config].Service.
type Options struct {
	// Name is the name of the ValidatingWebhookConfiguration.
	Name     string
	Webhooks []Webhook
	// Namespace is the namespace of the Secret with the shared certificate.
	Namespace string
	Kube      *rest.Config
	Log       *slog.Logger
	Metrics   prometheus.Registerer
}

// Server serves webhooks and keeps them registered.
type Server struct {
	cfg      Config
	options  Options
	kube     kubernetes.Interface
	listener net.Listener
	metrics  *metrics
	slots    *limiter.ConcurrencyLimiter
	clock    *apiServerClock
	// serving is the current certificate. next is the newest one. It serves once its authority is in the webhook
	// configuration.
	serving, next atomic.Pointer[servingCertificate]
	// validity is the lifetime of new certificates.
	validity time.Duration

	// rounds is locked during a check of the registration. announced is the newest certificate whose authority is
	// registered.
	rounds    sync.Mutex
	announced *servingCertificate

	mu sync.Mutex
	// registered is when the last successful [Server.RefreshRegistration] began, by [bootclock.Now]. failure is the
	// error of the last one, or nil.
	registered time.Duration
	failure    error
	// enforcedSince is the time since which every request was checked; zero while it is unknown.
	enforcedSince time.Time
}

// New returns a server that listens but does not serve yet. It sends no requests.
func New(cfg Config, o Options) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	kube := rest.CopyConfig(o.Kube)
	kube.QPS, kube.Timeout = -1, decisionTimeout
	api := &apiServerClock{}
	kube.Wrap(api.newRecordingTransport)
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return nil, fmt.Errorf("creating a client for admission: %w", err)
	}
	listener := cfg.Listener
	if listener == nil {
		if listener, err = net.Listen("tcp", cfg.Listen); err != nil {
			return nil, fmt.Errorf("listening for admission: %w", err)
		}
	}
	return &Server{
		cfg: cfg, options: o, kube: client, listener: listener, metrics: newMetrics(o.Metrics, o.Webhooks), validity: certificateValidity,
		slots: newRequestSlots(), clock: api, failure: errors.New("the webhooks have not been registered yet"),
	}, nil
}

// Run serves the webhooks and maintains the certificate and the registration until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.serveTLS(ctx) })
	group.Go(func() error { s.runRegistrationLoop(ctx); return nil })
	return group.Wait()
}

// RegistrationErr returns nil while the webhooks are known to be registered.
func (s *Server) RegistrationErr() error {
	if _, err := s.EnforcedSince(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.registered > 0 && bootclock.Since(s.registered) < registrationTimeout {
		return nil
	}
	return fmt.Errorf("the webhooks are not in force: %w", s.failure)
}

func (s *Server) serveTLS(ctx context.Context) error {
	server := &http.Server{
		Handler: http.MaxBytesHandler(s.newWebhookRouter(), maxReviewBytes), MaxHeaderBytes: maxHeader,
		ErrorLog:          slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.currentCertificate},
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(s.listener, "", "") }()
	select {
	case err := <-served:
		return fmt.Errorf("serving admission on %s: %w", s.listener.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

func (s *Server) currentCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.serving.Load(); c != nil {
		return &c.pair, nil
	}
	return nil, errors.New("there is no certificate yet")
}
