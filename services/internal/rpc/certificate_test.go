package rpc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// testFiles are certificate files that a test replaces. Each write sets a later modification time, even on a coarse
// clock.
type testFiles struct {
	CertificateFiles
	clock *time.Time
}

func newFiles(t *testing.T) testFiles {
	t.Helper()
	dir, clock := t.TempDir(), time.Now().Add(-time.Hour)
	return testFiles{CertificateFiles: CertificateFiles{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}, clock: &clock}
}

// write writes a self-signed certificate with this name.
func (f testFiles) write(t *testing.T, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	f.put(t, f.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	f.writeCertificate(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

func (f testFiles) writeCertificate(t *testing.T, data []byte) {
	t.Helper()
	f.put(t, f.Certificate, data)
}

func (f testFiles) put(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	*f.clock = f.clock.Add(time.Second)
	if err := os.Chtimes(file, *f.clock, *f.clock); err != nil {
		t.Fatal(err)
	}
}
