package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/devserver/opensearch"
)

// searchAnswerWithin bounds the slowest request on a busy machine.
const searchAnswerWithin = time.Minute

// OpenSearchServer is the OpenSearch of this test binary. Services reach it through [Traffic].
type OpenSearchServer struct {
	Traffic
	process *openSearchProcess
	proxy   *openSearchProxy
}

// StartOpenSearch returns the OpenSearch server and starts it if necessary. All tests of the binary share the server,
// so they must not run in parallel. When the test ends, its security configuration is reset.
func StartOpenSearch(t testing.TB) *OpenSearchServer {
	t.Helper()
	if err := sharedSearch.ensureStarted(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := &OpenSearchServer{process: &sharedSearch}
	var err error
	if o.proxy, err = newOpenSearchProxy(&o.Traffic, sharedSearch.server); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
		defer cancel()
		if err := errors.Join(o.proxy.stopProxy(ctx), sharedSearch.restoreSecurityConfig(ctx)); err != nil {
			t.Errorf("cleaning up after the test: %v", err)
		}
	})
	return o
}

// URL returns the address of OpenSearch for services. Requests go through [Traffic]. A restart keeps the address.
func (o *OpenSearchServer) URL() string { return o.proxy.url }

// CA returns the certificate authority of [OpenSearchServer.URL], in PEM form. Clients must trust it.
func (o *OpenSearchServer) CA() []byte { return o.process.server.CACertificate() }

// AdminCertificate returns the certificate and key of an administrator, in PEM form.
func (o *OpenSearchServer) AdminCertificate() (certificate, key []byte) {
	admin := o.process.server.AdminCertificate()
	return admin.Certificate, admin.Key
}

// AdminLogin returns the name and password of the administrator, for clients without a certificate.
func (o *OpenSearchServer) AdminLogin() (user, password string) {
	return opensearch.AdminUser, o.process.server.AdminPassword()
}

// RequestAsAdmin sends a request as the administrator and returns the status and the body. The request bypasses
// [Traffic]. An example of a path is "/_plugins/_security/api/roles". A body that is not nil is sent as JSON.
func (o *OpenSearchServer) RequestAsAdmin(t testing.TB, method, path string, body any) (status int, answer []byte) {
	t.Helper()
	status, answer, err := o.process.doRequest(t.Context(), method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, answer
}

// TryLogin logs in as a user. It returns the status, which is 200 or 401, and the body.
func (o *OpenSearchServer) TryLogin(t testing.TB, user, password string) (status int, answer []byte) {
	t.Helper()
	return o.RequestAs(t, user, password, http.MethodGet, "/_plugins/_security/authinfo", nil)
}

// RequestAs sends a request as a user with a password. See [OpenSearchServer.RequestAsAdmin].
func (o *OpenSearchServer) RequestAs(t testing.TB, user, password, method, path string, body any) (status int, answer []byte) {
	t.Helper()
	request, err := o.process.newRequest(t.Context(), method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(user, password)
	status, answer, err = sendRequest(o.process.anybody, request)
	if err != nil {
		t.Fatal(err)
	}
	return status, answer
}

// Stop stops the server with a signal. Later tests start it again.
func (o *OpenSearchServer) Stop(t testing.TB) {
	t.Helper()
	if err := o.process.server.Stop(); err != nil {
		t.Fatal(err)
	}
}

// Kill kills the server, like a crash. Later tests start it again.
func (o *OpenSearchServer) Kill() { o.process.server.Kill() }

// Start starts the server again, with the same data and the same address.
func (o *OpenSearchServer) Start(t testing.TB) {
	t.Helper()
	if err := o.process.ensureStarted(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// DeleteSecurityIndex deletes the index of the security configuration, as the restore of an old snapshot may do. The
// server then answers requests of its security API with an error until it restarts.
func (o *OpenSearchServer) DeleteSecurityIndex(t testing.TB) {
	t.Helper()
	if status, answer := o.RequestAsAdmin(t, http.MethodDelete, "/.opendistro_security", nil); status != http.StatusOK {
		t.Fatalf("wiping the index: %d %s", status, answer)
	}
}

// RunSecurityAdmin replaces the security configuration by the initial one, as securityadmin.sh does.
func (o *OpenSearchServer) RunSecurityAdmin(t testing.TB) {
	t.Helper()
	if err := o.process.server.RunSecurityAdmin(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// sharedSearch is the OpenSearch of this binary. A server per test would take several seconds each.
//
//nolint:gochecknoglobals // Tests of one binary have nothing else in common.
var sharedSearch openSearchProcess

// openSearchProcess is an OpenSearch that starts at its first use.
type openSearchProcess struct {
	mu             sync.Mutex
	dir            string
	port           int
	server         *opensearch.Server
	admin, anybody *http.Client
	// initialConfig holds the initial security configuration, by kind and name.
	initialConfig map[string]map[string]json.RawMessage
}

// ensureStarted starts the server unless it is running. An earlier test may have stopped it.
func (s *openSearchProcess) ensureStarted(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil && !s.server.HasEnded() {
		return nil
	}
	home, err := opensearch.FindInstallation()
	if err != nil {
		return err
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "entail-opensearch-"); err != nil {
			return fmt.Errorf("creating a directory for OpenSearch: %w", err)
		}
	}
	s.server, err = opensearch.Start(ctx, opensearch.Config{Home: home, Dir: s.dir, Port: s.port, UnsafeCheapHashes: true})
	if err != nil {
		return err
	}
	s.port = s.server.Port()
	if s.admin != nil {
		return nil
	}
	if s.admin, err = s.newClient(true); err != nil {
		return err
	}
	if s.anybody, err = s.newClient(false); err != nil {
		return err
	}
	s.initialConfig, err = s.readSecurityConfig(ctx)
	return err
}

// newClient returns a client that keeps no idle connections, because the server can stop at any time.
func (s *openSearchProcess) newClient(admin bool) (*http.Client, error) {
	cfg, err := s.server.ClientTLSConfig(admin)
	if err != nil {
		return nil, err
	}
	return &http.Client{Timeout: searchAnswerWithin, Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}, nil
}

func (s *openSearchProcess) newRequest(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var reader io.Reader = http.NoBody
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.server.URL()+path, reader)
	if err == nil && body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, err
}

func (s *openSearchProcess) doRequest(ctx context.Context, method, path string, body any) (status int, answer []byte, err error) {
	request, err := s.newRequest(ctx, method, path, body)
	if err != nil {
		return 0, nil, err
	}
	return sendRequest(s.admin, request)
}

func sendRequest(client *http.Client, request *http.Request) (status int, answer []byte, err error) {
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

func (s *openSearchProcess) endServer() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.server != nil && !s.server.HasEnded() {
		err = s.server.Stop()
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}
