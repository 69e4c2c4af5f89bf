package admission

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
)

const (
	// validity is how long a certificate holds; in its last third another is made.
	validity = 90 * 24 * time.Hour
	// maxAuthorities bounds those that the API server is to trust at a time.
	maxAuthorities = 3
)

// certificate is what the server shows, with the authority that signed it.
type certificate struct {
	pair tls.Certificate
	// chain and key are the PEM form.
	chain, key []byte
	authority  *x509.Certificate
}

func newCertificate(host string, validity time.Duration) (*certificate, error) {
	chain, key, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{Host: host, MaxAge: validity})
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	return parseCertificate(chain, key)
}

func parseCertificate(chain, key []byte) (*certificate, error) {
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	all, err := cert.ParseCertsPEM(chain)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	authority := all[len(all)-1]
	if len(all) < 2 || !authority.IsCA {
		return nil, errors.New("reading the certificate: its authority is not with it")
	}
	return &certificate{pair: pair, chain: chain, key: key, authority: authority}, nil
}

// serves reports whether the certificate is for a host, and for a while to come.
func (c *certificate) serves(host string, now time.Time, validity time.Duration) bool {
	return c.pair.Leaf.VerifyHostname(host) == nil && now.Add(validity/3).Before(c.pair.Leaf.NotAfter)
}

// bundle is the authority first, then the newest of those in another bundle that have not expired.
func (c *certificate) bundle(before []byte, now time.Time) []byte {
	others, _ := cert.ParseCertsPEM(before) // What is none is left out.
	others = slices.DeleteFunc(others, func(o *x509.Certificate) bool { return o.Equal(c.authority) || !o.IsCA || now.After(o.NotAfter) })
	slices.SortStableFunc(others, func(a, b *x509.Certificate) int { return b.NotBefore.Compare(a.NotBefore) })
	var bundle []byte
	for _, a := range append([]*x509.Certificate{c.authority}, others[:min(len(others), maxAuthorities-1)]...) {
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: a.Raw})...)
	}
	return bundle
}
