// Package credentials makes what a local API server and its users prove their
// identity with: a certificate authority that stays, certificates that are
// signed anew at each start, a signing key for service accounts, kubeconfigs.
//
// Clients trust the authority, never one certificate; so signing anew costs
// nothing, and there is no certificate to renew or to fit to other hosts.
package credentials

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/entail-dev/entail/deploy/local/internal/datadir"
)

// A certificate never outlives its authority: an authority that has less than
// leafLifetime left is replaced.
const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	leafLifetime      = 365 * 24 * time.Hour
	clockSkew         = 5 * time.Minute
)

// CertificateAuthority signs certificates.
type CertificateAuthority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	now         time.Time
}

// CertificatePair is a certificate and its private key, both in PEM.
type CertificatePair struct {
	Certificate []byte
	Key         []byte
}

// LoadAuthority reads the authority from ca.crt and ca.key in dir. One that is
// missing, damaged or about to expire is replaced: all that it ever signed is
// signed anew at each start.
func LoadAuthority(dir string, now time.Time) (*CertificateAuthority, error) {
	if authority, err := readAuthority(dir, now); err == nil {
		return authority, nil
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "kube-local"},
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	pair, err := (&CertificateAuthority{now: now}).signCertificate(template)
	if err != nil {
		return nil, err
	}
	if err := pair.WriteFiles(filepath.Join(dir, "ca")); err != nil {
		return nil, err
	}
	return readAuthority(dir, now)
}

func readAuthority(dir string, now time.Time) (*CertificateAuthority, error) {
	base := filepath.Join(dir, "ca")
	pair, err := tls.LoadX509KeyPair(base+".crt", base+".key")
	if err != nil {
		return nil, fmt.Errorf("reading certificate authority: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("reading certificate authority: %s.crt is of another kind", base)
	}
	if now.Before(pair.Leaf.NotBefore) || now.Add(leafLifetime).After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("reading certificate authority: valid until %s only", pair.Leaf.NotAfter)
	}
	return &CertificateAuthority{certificate: pair.Leaf, key: key, now: now}, nil
}

// CertificatePEM is the authority's own certificate in PEM, for clients to trust.
func (a *CertificateAuthority) CertificatePEM() []byte {
	return encodePEM("CERTIFICATE", a.certificate.Raw)
}

// IssueServerCertificate signs a certificate for a server that answers under these names and
// addresses.
func (a *CertificateAuthority) IssueServerCertificate(hosts []string, addresses []net.IP) (CertificatePair, error) {
	return a.signCertificate(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		NotAfter:    a.now.Add(leafLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    hosts,
		IPAddresses: addresses,
	})
}

// IssueClientCertificate signs a certificate for a user; Kubernetes reads the user from the
// common name and the groups from the organizations.
func (a *CertificateAuthority) IssueClientCertificate(user string, groups []string) (CertificatePair, error) {
	return a.signCertificate(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		NotAfter:    a.now.Add(leafLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// signCertificate makes a key and its certificate; an authority without a certificate
// makes its own.
func (a *CertificateAuthority) signCertificate(template *x509.Certificate) (CertificatePair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return CertificatePair{}, fmt.Errorf("making a key for %s: %w", template.Subject, err)
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	template.NotBefore = a.now.Add(-clockSkew)
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return CertificatePair{}, fmt.Errorf("making a serial number for %s: %w", template.Subject, err)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return CertificatePair{}, fmt.Errorf("signing the certificate of %s: %w", template.Subject, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return CertificatePair{}, err
	}
	return CertificatePair{Certificate: encodePEM("CERTIFICATE", raw), Key: keyPEM}, nil
}

// WriteFiles stores the pair in base.key and base.crt.
func (p CertificatePair) WriteFiles(base string) error {
	if err := os.MkdirAll(filepath.Dir(base), 0o700); err != nil {
		return fmt.Errorf("creating directory of certificates: %w", err)
	}
	if err := datadir.WriteFile(base+".key", p.Key); err != nil {
		return err
	}
	return datadir.WriteFile(base+".crt", p.Certificate)
}

func encodePEM(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}
