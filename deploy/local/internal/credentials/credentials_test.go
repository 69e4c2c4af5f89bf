package credentials

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

func load(t *testing.T, dir string, now time.Time) *CertificateAuthority {
	t.Helper()
	authority, err := LoadAuthority(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func parse(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("no PEM in %q", data)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func TestAuthorityIsRenewedBeforeCertificatesOutliveIt(t *testing.T) {
	start := time.Now()
	for name, test := range map[string]struct {
		later time.Duration
		kept  bool
	}{
		"at once":               {0, true},
		"after years":           {authorityLifetime - leafLifetime - time.Hour, true},
		"in its last year":      {authorityLifetime - leafLifetime + time.Hour, false},
		"after its end":         {authorityLifetime + time.Hour, false},
		"when the clock is off": {-time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := load(t, dir, start).CertificatePEM()
			second := load(t, dir, start.Add(test.later)).CertificatePEM()
			if kept := bytes.Equal(first, second); kept != test.kept {
				t.Errorf("kept = %t, want %t", kept, test.kept)
			}
		})
	}
}

func TestDamagedAuthorityIsReplaced(t *testing.T) {
	other := t.TempDir()
	load(t, other, time.Now())
	otherKey, err := os.ReadFile(filepath.Join(other, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		file    string
		content []byte
	}{
		"empty certificate":  {"ca.crt", nil},
		"text for a key":     {"ca.key", []byte("key")},
		"key of another one": {"ca.key", otherKey},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := load(t, dir, time.Now()).CertificatePEM()
			if err := os.WriteFile(filepath.Join(dir, test.file), test.content, 0o600); err != nil {
				t.Fatal(err)
			}
			second := load(t, dir, time.Now())
			if bytes.Equal(first, second.CertificatePEM()) {
				t.Error("the damaged authority is still in use")
			}
			if _, err := second.IssueClientCertificate("alice", nil); err != nil {
				t.Errorf("the new authority does not sign: %v", err)
			}
		})
	}
}

func TestServerCertificateIsValidForHosts(t *testing.T) {
	authority := load(t, t.TempDir(), time.Now())
	pair, err := authority.IssueServerCertificate([]string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.certificate)
	certificate := parse(t, pair.Certificate)
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true, "example.org": false, "127.0.0.2": false} {
		_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
		if (err == nil) != want {
			t.Errorf("valid for %s: %v, want %t", host, err, want)
		}
	}
}

func TestClientCertificateHasUserAndGroups(t *testing.T) {
	authority := load(t, t.TempDir(), time.Now())
	pair, err := authority.IssueClientCertificate("alice", []string{"dev", "system:masters"})
	if err != nil {
		t.Fatal(err)
	}
	certificate := parse(t, pair.Certificate)
	roots := x509.NewCertPool()
	roots.AddCert(authority.certificate)
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("not valid for a client: %v", err)
	}
	if certificate.Subject.CommonName != "alice" || !slices.Equal(certificate.Subject.Organization, []string{"dev", "system:masters"}) {
		t.Errorf("subject = %s, want alice in dev and system:masters", certificate.Subject)
	}
	if certificate.NotAfter.After(authority.certificate.NotAfter) {
		t.Error("the certificate outlives its authority")
	}
}

func TestServiceAccountKeyIsKeptUnlessDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "service-account.key")
	first, err := LoadSigningKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := LoadSigningKey(path); err != nil || !again.Equal(first) {
		t.Errorf("the key did not last: %v", err)
	}
	if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	replaced, err := LoadSigningKey(path)
	if err != nil || replaced.Equal(first) {
		t.Errorf("the damaged key was not replaced: %v", err)
	}
}

func TestKubeconfigIsSelfContained(t *testing.T) {
	dir := t.TempDir()
	cluster := ClusterAccess{Server: "https://127.0.0.1:6443", Authority: load(t, dir, time.Now())}
	path := filepath.Join(dir, "alice.kubeconfig")
	if err := cluster.WriteKubeconfig(path, "alice", []string{"dev"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v, want 0600", info.Mode(), err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != cluster.Server || !bytes.Equal(config.CAData, cluster.Authority.CertificatePEM()) {
		t.Errorf("server = %s, want %s and its authority", config.Host, cluster.Server)
	}
	if user := parse(t, config.CertData).Subject.CommonName; user != "alice" {
		t.Errorf("user = %s, want alice", user)
	}
}
