//go:build integration

package allinone

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/entail-dev/entail/services/internal/testenv"
)

// stateDirectory returns a directory with the permissions of a real state directory: only its owner may use it.
func stateDirectory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "entail-state-") //nolint:usetesting // The directories of tests are their user's alone.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestConnectionSecretReachesOpenSearchAfterRestart(t *testing.T) {
	server, dir, cfg := testenv.StartKube(t), stateDirectory(t), Defaults()
	cfg.Ports.OpenSearch = 0
	secrets := kubernetes.NewForConfigOrDie(server.AdminConfig()).CoreV1().Secrets(connectionNamespace)
	var first []byte
	for range 2 {
		s := &servers{}
		if err := s.startOpenSearch(t.Context(), cfg, dir); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.openSearch.Kill() })
		if err := applyConnectionSecret(t.Context(), server.AdminConfig(), s.openSearch); err != nil {
			t.Fatal(err)
		}
		secret, err := secrets.Get(t.Context(), connectionName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if status := deleteIndex(t, secret.Data); status != http.StatusNotFound {
			t.Errorf("an administrator's request: %d; want that there is no such thing", status)
		}
		if first == nil {
			first = secret.Data["ca.crt"]
		}
		if string(first) != string(secret.Data["ca.crt"]) {
			t.Error("another start has another authority")
		}
		if err := s.stopServers(); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(filepath.Join(dir, "opensearch", "credentials")); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("credentials: %v, %v", info, err)
		}
	}
}

// deleteIndex sends a request that only an administrator may send to the server in the Secret, and returns the status.
func deleteIndex(t *testing.T, connection map[string][]byte) (status int) {
	t.Helper()
	pair, err := tls.X509KeyPair(connection["tls.crt"], connection["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(connection["ca.crt"])
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
	}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, string(connection["url"])+"/_plugins/_security/api/roles/none", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}
