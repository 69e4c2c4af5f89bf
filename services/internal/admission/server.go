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
)

// Bounds of every server.
const (
	// maxReview is more than two states of the largest object with who writes it.
	maxReview = 8 << 20
	maxHeader = 64 << 10
	// timeout is how long the API server waits for an answer, decision how long one may take.
	timeout         = 5 * time.Second
	decision        = 4 * time.Second
	readTimeout     = 10 * time.Second
	writeTimeout    = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 5 * time.Second
)

// Webhook is what the API server is to ask, and who answers.
type Webhook struct {
	// ValidatingWebhook says what is judged: Name, Rules, NamespaceSelector and MatchConditions; FailurePolicy
	// where what cannot be judged is to pass. The server fills in the rest.
	admissionregistrationv1.ValidatingWebhook
	Judge Judge
	// Scope is where the API server is to ask, unless NamespaceSelector says it once for all.
	Scope Scope
	// About is what the API server is to ask about, unless Rules and MatchConditions say it once for all.
	About About
}

// About gives what is to be registered in place of what is; nothing is if there is none. Whoever is judged by it counts as judged,
// whatever it was before.
type About func(
	ctx context.Context, rules []admissionregistrationv1.RuleWithOperations, conditions []admissionregistrationv1.MatchCondition,
) ([]admissionregistrationv1.RuleWithOperations, []admissionregistrationv1.MatchCondition)

// Scope decides in which namespaces the API server asks.
type Scope interface {
	// Selector is what is to be registered in place of what is; that is nil if there is nothing.
	Selector(ctx context.Context, is *metav1.LabelSelector) (*metav1.LabelSelector, error)
	// Registered tells what is registered now.
	Registered(selector *metav1.LabelSelector)
}

// Options are what a [Server] is made of. All are required.
type Options struct {
	// Name is that of the ValidatingWebhookConfiguration.
	Name     string
	Webhooks []Webhook
	// Namespace is where replicas share the certificate.
	Namespace string
	Kube      *rest.Config
	Log       *slog.Logger
	Metrics   prometheus.Registerer
}

// Server answers the API server.
type Server struct {
	cfg      Config
	options  Options
	kube     kubernetes.Interface
	listener net.Listener
	metrics  *metrics
	slots    *slots
	clock    *clock
	// serving is what is shown to the API server, next what is to be.
	serving, next atomic.Pointer[certificate]
	// validity is that of new certificates.
	validity time.Duration

	// rounds is held during one, announced the newest certificate whose authority has been registered.
	rounds    sync.Mutex
	announced *certificate

	mu sync.Mutex
	// registered is when everything was last found as it must be, by [bootclock.Now]; failure what was
	// wrong the last time.
	registered time.Duration
	failure    error
	// inForce is since when nothing has passed that was not judged; zero if that is not known.
	inForce time.Time
}

// New takes the address. It connects to nothing yet.
func New(cfg Config, o Options) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	kube := rest.CopyConfig(o.Kube)
	kube.QPS, kube.Timeout = -1, decision
	api := &clock{}
	kube.Wrap(api.watch)
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return nil, fmt.Errorf("making a client for admission: %w", err)
	}
	listener := cfg.Listener
	if listener == nil {
		if listener, err = net.Listen("tcp", cfg.Listen); err != nil {
			return nil, fmt.Errorf("listening for admission: %w", err)
		}
	}
	return &Server{
		cfg: cfg, options: o, kube: client, listener: listener, metrics: newMetrics(o.Metrics, o.Webhooks), validity: validity,
		slots: newSlots(), clock: api, failure: errors.New("the webhooks have not been registered yet"),
	}, nil
}

// Run serves, and keeps certificate and registration, until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.serve(ctx) })
	group.Go(func() error { s.keep(ctx); return nil })
	return group.Wait()
}

// InForce is nil while the API server is known to ask.
func (s *Server) InForce() error {
	if _, err := s.Since(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.registered > 0 && bootclock.Since(s.registered) < forgotten {
		return nil
	}
	return fmt.Errorf("the webhooks are not in force: %w", s.failure)
}

func (s *Server) serve(ctx context.Context) error {
	server := &http.Server{
		Handler: http.MaxBytesHandler(s.route(), maxReview), MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.show},
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

func (s *Server) show(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.serving.Load(); c != nil {
		return &c.pair, nil
	}
	return nil, errors.New("there is no certificate yet")
}
