package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/rest"
)

// Bounds of every server.
const (
	maxBody           = 1 << 20
	maxHeader         = 64 << 10 // Tokens with many groups must fit.
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	handlerTimeout    = 30 * time.Second
	writeTimeout      = handlerTimeout + 10*time.Second
	// streamTimeout bounds a streaming answer. A client that needs more opens another stream.
	streamTimeout   = 5 * time.Minute
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 5 * time.Second
)

// Config configures a [Server]. Log and Metrics are required.
type Config struct {
	// Address is the "host:port" to listen on. Listener replaces it.
	Address  string
	Listener net.Listener
	// TLS is off if no files are set.
	TLS CertificateFiles
	// Auth selects the authentication. [AuthKubernetes] requires Kube.
	Auth AuthMode
	Kube *rest.Config
	// Ready returns nil while the process accepts traffic; /readyz shows its error. It is called often and must not
	// block. If it is nil, the server is always ready.
	Ready func() error

	Log     *slog.Logger
	Metrics *prometheus.Registry
	// Tracer and Propagator are optional. Without them calls are not traced.
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator
}

// Server listens from its creation. It answers probes while it runs, and procedures after they are mounted.
type Server struct {
	log      *slog.Logger
	listener net.Listener
	mux      *http.ServeMux
	http     *http.Server
	chain    *interceptorChain
	ready    func() error

	mu       sync.RWMutex
	services []string
}

// New opens the listener. It returns an error for invalid settings.
func New(cfg Config) (*Server, error) {
	if err := cfg.Auth.Validate(); err != nil {
		return nil, err
	}
	chain, err := newInterceptorChain(cfg)
	if err != nil {
		return nil, err
	}
	listener, err := openListener(cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{log: cfg.Log, listener: listener, mux: http.NewServeMux(), chain: chain, ready: cfg.Ready}
	if s.http, err = newHTTPServer(cfg, s.mux); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s.mountProbes(cfg.Metrics)
	if cfg.Auth == AuthKubernetes && s.http.TLSConfig == nil && !isLoopback(listener.Addr()) {
		s.log.Warn("tokens of callers cross the network unencrypted: give the server a certificate", "address", listener.Addr().String())
	}
	return s, nil
}

func openListener(cfg Config) (net.Listener, error) {
	listener := cfg.Listener
	if listener == nil {
		var err error
		if listener, err = net.Listen("tcp", cfg.Address); err != nil {
			return nil, fmt.Errorf("listening for queries and probes: %w", err)
		}
	}
	if err := cfg.Auth.checkAddress(listener.Addr()); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

func newHTTPServer(cfg Config, mux http.Handler) (*http.Server, error) {
	handler := http.MaxBytesHandler(mux, maxBody)
	if cfg.Auth == AuthNone {
		handler = requireLoopbackHost(handler)
	}
	server := &http.Server{
		Handler: handler, Protocols: new(http.Protocols), ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	if cfg.TLS == (CertificateFiles{}) {
		return server, nil
	}
	var err error
	server.TLSConfig, err = cfg.TLS.tlsConfig(cfg.Log)
	return server, err
}

// Addr returns the address of the listener.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Mount adds services. The server may already run.
func (s *Server) Mount(handlers ...Handler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range handlers {
		if slices.Contains(s.services, h.service) {
			return fmt.Errorf("service %s is mounted twice", h.service)
		}
		if err := h.validateAccessRules(); err != nil {
			return fmt.Errorf("mounting %s: %w", h.service, err)
		}
		path, handler := h.mount(s.chain.handlerOptions(h)...)
		s.mux.Handle(path, rewriteTooLargeStatus(extendStreamDeadlines(handler, h.streamProcedures())))
		s.services = append(s.services, h.service)
	}
	return nil
}

// extendStreamDeadlines extends the deadlines of procedures with a streaming answer.
func extendStreamDeadlines(next http.Handler, streams map[string]struct{}) http.Handler {
	if len(streams) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := streams[r.URL.Path]; ok {
			control, end := http.NewResponseController(w), time.Now().Add(streamTimeout+writeTimeout-handlerTimeout)
			// On error the connection keeps its own deadlines.
			_ = control.SetReadDeadline(end)
			_ = control.SetWriteDeadline(end)
		}
		next.ServeHTTP(w, r)
	})
}

// Run serves until ctx ends. Then it waits until running calls have ended, for shutdownTimeout at most.
func (s *Server) Run(ctx context.Context) error {
	serve := s.http.Serve
	if s.http.TLSConfig != nil {
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	served := make(chan error, 1)
	go func() { served <- serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serving on %s: %w", s.listener.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("calls were cut off: they did not end in time", "timeout", shutdownTimeout)
		err = s.http.Close()
	}
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	if err != nil {
		return fmt.Errorf("stopping to serve on %s: %w", s.listener.Addr(), err)
	}
	return nil
}
