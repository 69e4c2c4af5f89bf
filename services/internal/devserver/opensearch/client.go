package opensearch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/devserver"
)

const (
	readyPoll   = 50 * time.Millisecond
	readyAnswer = 5 * time.Second
	maxHealth   = 64 << 10
)

// AdminUser is the name of the user with all rights.
const AdminUser = adminName

// URL returns the URL of the server's API.
func (s *Server) URL() string { return "https://" + devserver.LoopbackAddress(s.cfg.Port) }

// Port returns the port that the server listens on.
func (s *Server) Port() int { return s.cfg.Port }

// CACertificate returns the certificate authority of the server, in PEM form. Clients must trust it.
func (s *Server) CACertificate() []byte { return s.credentials.ca.Certificate }

// AdminCertificate returns the administrator's client certificate, which gives all rights.
func (s *Server) AdminCertificate() Certificate { return s.credentials.admin }

// NodeCertificate returns the server's own certificate, for a proxy in front of it.
func (s *Server) NodeCertificate() Certificate { return s.credentials.node }

// AdminPassword returns the password of [AdminUser]. It was made at the server's first start.
func (s *Server) AdminPassword() string { return s.password }

// AdminPasswordFile returns the file with [Server.AdminPassword].
func (s *Server) AdminPasswordFile() string { return filepath.Join(s.cfg.Dir, secrets, "password") }

// ClientTLSConfig returns a TLS configuration for clients. It contains the administrator's certificate if admin is
// true.
func (s *Server) ClientTLSConfig(admin bool) (*tls.Config, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CACertificate())
	cfg := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if admin {
		pair, err := tls.X509KeyPair(s.credentials.admin.Certificate, s.credentials.admin.Key)
		if err != nil {
			return nil, fmt.Errorf("reading the administrator's certificate: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// waitReady returns when the security plugin reports that it is ready.
func (s *Server) waitReady(ctx context.Context) error {
	cfg, err := s.ClientTLSConfig(false)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: readyAnswer}
	for {
		err := s.checkHealth(ctx, client)
		if err == nil {
			return nil
		}
		if s.HasEnded() {
			return errors.New("it ended before it was ready")
		}
		if !backoff.Sleep(ctx, readyPoll) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

func (s *Server) checkHealth(ctx context.Context, client *http.Client) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/_plugins/_security/health", http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var health struct{ Status, Message string }
	if err := json.NewDecoder(io.LimitReader(response.Body, maxHealth)).Decode(&health); err != nil {
		return err
	}
	if health.Status != "UP" {
		return fmt.Errorf("health is %s: %s", health.Status, health.Message)
	}
	return nil
}
