package authorizer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// sign returns a certificate and its key.
func (a *authority) sign(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// served starts a server with TLS and returns its URL and configuration.
func served(t *testing.T, server, clients *authority) (url string, cfg Config) {
	t.Helper()
	dir := t.TempDir()
	cfg = Config{
		Listen: "127.0.0.1:0", Certificate: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"),
		ClientCA: filepath.Join(dir, "ca"), ClientNames: []string{"kube-apiserver"},
	}
	cert, key := server.sign(t, "server")
	write(t, cfg.Certificate, cert)
	write(t, cfg.Key, key)
	write(t, cfg.ClientCA, clients.pem())
	s, err := New(cfg, (&fake{allowed: true}).options())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "https://" + s.Addr().String() + core, cfg
}

// ask sends a review on a new connection and returns the status.
func ask(t *testing.T, url string, server, client *authority, name string) (code, protocol int, err error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: server.pool(), MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	if client != nil {
		pair, err := tls.X509KeyPair(client.sign(t, name))
		if err != nil {
			t.Fatal(err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(asked))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0, 0, err
	}
	return answer.StatusCode, answer.ProtoMajor, answer.Body.Close()
}

func TestHandlerAcceptsOnlyAPIServer(t *testing.T) {
	server, clients := newAuthority(t), newAuthority(t)
	url, _ := served(t, server, clients)
	if code, protocol, err := ask(t, url, server, clients, "kube-apiserver"); code != http.StatusOK || protocol != 2 || err != nil {
		t.Errorf("API server: got %d over HTTP/%d, %v", code, protocol, err)
	}
	if code, _, err := ask(t, url, server, clients, "kubelet"); code != http.StatusForbidden || err != nil {
		t.Errorf("other client: got %d, %v, want Forbidden", code, err)
	}
	if _, _, err := ask(t, url, server, server, "kube-apiserver"); err == nil {
		t.Error("a client certificate of another authority was accepted")
	}
	if _, _, err := ask(t, url, server, nil, ""); err == nil {
		t.Error("a client without a certificate was accepted")
	}
}

func TestCertificatesAreReloaded(t *testing.T) {
	server, clients := newAuthority(t), newAuthority(t)
	url, cfg := served(t, server, clients)
	again := newAuthority(t)
	cert, key := again.sign(t, "server")
	write(t, cfg.Certificate, append(cert, '\n'))
	write(t, cfg.Key, append(key, '\n'))
	write(t, cfg.ClientCA, append(again.pem(), '\n'))
	if code, _, err := ask(t, url, again, again, "kube-apiserver"); code != http.StatusOK || err != nil {
		t.Errorf("%d, %v", code, err)
	}
	if _, _, err := ask(t, url, again, clients, "kube-apiserver"); err == nil {
		t.Error("a client certificate of the previous authority was accepted")
	}
}

func TestNewRefusesUnusableFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x")
	write(t, file, []byte("x"))
	for _, cfg := range []Config{
		{Listen: "127.0.0.1:0", Certificate: file, Key: file},
		{Listen: "127.0.0.1:0", Certificate: filepath.Join(dir, "none"), Key: file},
		{Listen: "127.0.0.1:x"},
	} {
		if _, err := New(cfg, (&fake{}).options()); err == nil {
			t.Errorf("%+v: got no error", cfg)
		}
	}
}
