//go:build integration

package webhook_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// certified returns the access of a client with a certificate of the API server's authority, with a UID unless it is
// empty.
func certified(t *testing.T, server *devserver.KubeLocal, name, uid string) *rest.Config {
	t.Helper()
	pki := filepath.Join(filepath.Dir(server.Kubeconfig), "pki")
	authority, err := tls.LoadX509KeyPair(filepath.Join(pki, "ca.crt"), filepath.Join(pki, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if uid != "" { // The API server uses this attribute of the subject as the UID.
		uidName := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}
		template.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: uidName, Value: uid}}
	}
	chain, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := server.AdminConfig()
	if err != nil {
		t.Fatal(err)
	}
	cfg = rest.AnonymousClientConfig(cfg)
	cfg.CertData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain})
	cfg.KeyData = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	return cfg
}

// TestCertificateUIDIdentifiesUser verifies that a UID in a certificate identifies the User, whatever the name. A name
// without a UID identifies no User by default.
func TestCertificateUIDIdentifiesUser(t *testing.T) {
	address, set := authorizerOf(t)
	b := newBedWith(t, set)
	b.StartReflector()
	b.configMaps()
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	b.create(kinds.IAMUsers(), "mallory", map[string]any{"email": "mallory@example.com"})
	b.create(kinds.PolicyBindings(), "all", map[string]any{
		"roleRef": map[string]any{"name": "lister"}, "subjects": []any{subjectFromMessage("User", "alice", alice)},
		"resourceSelector": map[string]any{"resourceKind": map[string]any{"apiGroup": "core.miloapis.com", "kind": "ConfigMap"}},
	})
	server := apiServer(t, "http://"+address+"/core/v1alpha/webhook", nil)
	answers := func(name, uid string, want int) {
		t.Helper()
		call := callerWith(t, certified(t, server, name, uid))
		testenv.Eventually(t, soon, func() error {
			if code, err := call("/api/v1/namespaces/default/configmaps"); err != nil || code != want {
				return fmt.Errorf("name %q, UID %q: got status %d, %w", name, uid, code, err)
			}
			return nil
		})
	}
	answers("somebody", "alice", http.StatusOK)
	answers("alice", "mallory", http.StatusForbidden)
	answers("alice", "", http.StatusForbidden)
	answers("somebody", alice, http.StatusForbidden)
	answers("alice", "alice", http.StatusOK)
}
