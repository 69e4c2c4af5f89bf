package authorizer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/filewatch"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/webhook/internal/review"
)

// Bounds of the server. A client that sends slowly is disconnected.
const (
	maxReview       = 1 << 20
	maxHeader       = 32 << 10
	headerTimeout   = 5 * time.Second
	readTimeout     = 5 * time.Second
	decisionTimeout = 5 * time.Second
	writeTimeout    = readTimeout + decisionTimeout + 5*time.Second
	idleTimeout     = 5 * time.Minute
	shutdownTimeout = 5 * time.Second
)

// Options holds the collaborators of a [Server]. All are required.
type Options struct {
	Rules *review.TrustRules
	// Registry returns the registered kinds. An error means that no question can be answered now.
	Registry func() (*iam.Registry, error)
	// Decide decides a question. An error means that the answer is unknown now.
	Decide func(context.Context, authz.Query) (authz.Proof, bool, error)

	Log        *slog.Logger
	Metrics    prometheus.Registerer
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator
}

// Server serves reviews of the API server.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// New returns a server that already listens.
func New(cfg Config, o Options) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	h, err := newHandler(cfg, o)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: cfg.Listener, http: &http.Server{
		Handler: h.buildRoutes(), MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
	}}
	if cfg.Certificate != "" {
		if s.http.TLSConfig, err = tlsConfig(cfg, o.Log); err != nil {
			return nil, err
		}
	}
	if s.listener == nil {
		if s.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
			return nil, fmt.Errorf("listening for the API server: %w", err)
		}
	}
	return s, nil
}

// tlsConfig returns the TLS configuration. It always uses the current content of the certificate files.
func tlsConfig(cfg Config, log *slog.Logger) (*tls.Config, error) {
	pair, err := filewatch.Open(log, func(contents ...[]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		return &pair, err
	}, cfg.Certificate, cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("reading --authorizer-cert and --authorizer-key: %w", err)
	}
	shown := &tls.Config{
		// A resumed session would skip the check of the client certificate.
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Get(), nil },
	}
	if cfg.ClientCA == "" {
		return shown, nil
	}
	authorities, err := filewatch.Open(log, parseCertPool, cfg.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("reading --authorizer-client-ca: %w", err)
	}
	shown.ClientAuth = tls.RequireAndVerifyClientCert
	shown.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := shown.Clone()
		now.GetConfigForClient, now.ClientCAs = nil, authorities.Get()
		return now, nil
	}
	return shown, nil
}

func parseCertPool(contents ...[]byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(contents[0]) {
		return nil, errors.New("there is no certificate in it")
	}
	return pool, nil
}

// Addr returns the address at which the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until ctx ends. It then finishes running requests within shutdownTimeout.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() {
		if s.http.TLSConfig != nil {
			served <- s.http.ServeTLS(s.listener, "", "")
		} else {
			served <- s.http.Serve(s.listener)
		}
	}()
	select {
	case err := <-served:
		return fmt.Errorf("serving the API server on %s: %w", s.listener.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
