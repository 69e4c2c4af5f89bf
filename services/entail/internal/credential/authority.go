package credential

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
	"slices"
	"time"

	"github.com/entail-dev/entail/services/internal/rbac"
)

// Lifetimes. A server certificate is replaced when less than renewal of its life is left.
const (
	authorityLife = 20 * 365 * 24 * time.Hour
	serverLife    = 2 * 365 * 24 * time.Hour
	renewal       = 365 * 24 * time.Hour
	clockSkew     = 5 * time.Minute
)

// certificateAuthority signs certificates.
type certificateAuthority struct {
	certificate, key []byte
	leaf             *x509.Certificate
	signer           *ecdsa.PrivateKey
	now              time.Time
}

// loadOrCreateAuthority reads the existing authority, or creates one if both files are absent. It never replaces one, because
// every process that trusts it would need a restart.
func loadOrCreateAuthority(files map[string][]byte, now time.Time) (*certificateAuthority, error) {
	a := &certificateAuthority{certificate: files[authorityFile], key: files["ca.key"], now: now}
	if len(a.certificate) == 0 && len(a.key) == 0 {
		template := &x509.Certificate{
			Subject: pkix.Name{CommonName: "entail"}, NotAfter: now.Add(authorityLife),
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, BasicConstraintsValid: true, IsCA: true,
		}
		var err error
		if a.certificate, a.key, err = a.createCertificate(template); err != nil {
			return nil, err
		}
	}
	pair, err := tls.X509KeyPair(a.certificate, a.key)
	if err != nil {
		return nil, fmt.Errorf("the authority (ca) is damaged: restore it, or remove all that it signed, too: %w", err)
	}
	signer, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("the certificate of %s in ca cannot sign others with an ECDSA key", pair.Leaf.Subject)
	}
	a.leaf, a.signer = pair.Leaf, signer
	return a, nil
}

func (a *certificateAuthority) authorityFiles() map[string][]byte {
	return map[string][]byte{authorityFile: a.certificate, "ca.key": a.key}
}

// keepOrIssueCertificate returns a certificate for the given host names: on this machine, in a container network, and in the namespace
// of services. It keeps the existing certificate if that is still good.
func (a *certificateAuthority) keepOrIssueCertificate(have map[string][]byte, name string, hosts []string) (map[string][]byte, error) {
	names := []string{"localhost"}
	for _, host := range hosts {
		names = append(names, host, host+"."+rbac.Namespace, host+"."+rbac.Namespace+".svc", host+"."+rbac.Namespace+".svc.cluster.local")
	}
	if a.isCertificateValid(have, names) {
		return map[string][]byte{certificateFile: have[certificateFile], keyFile: have[keyFile]}, nil
	}
	certificate, key, err := a.createCertificate(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotAfter: a.now.Add(serverLife), KeyUsage: x509.KeyUsageDigitalSignature,
		// Servers of one cluster are also clients of each other.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	})
	return map[string][]byte{certificateFile: certificate, keyFile: key}, err
}

// isCertificateValid reports whether the certificate has these names and this issuer, and lives longer than renewal.
func (a *certificateAuthority) isCertificateValid(have map[string][]byte, names []string) bool {
	pair, err := tls.X509KeyPair(have[certificateFile], have[keyFile])
	if err != nil || !slices.Equal(pair.Leaf.DNSNames, names) || a.now.Add(renewal).After(pair.Leaf.NotAfter) {
		return false
	}
	return pair.Leaf.CheckSignatureFrom(a.leaf) == nil
}

// createCertificate creates a key and its certificate. An authority without a certificate signs its own.
func (a *certificateAuthority) createCertificate(template *x509.Certificate) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("creating the key of %s: %w", template.Subject, err)
	}
	parent, signer := a.leaf, a.signer
	if parent == nil {
		parent, signer = template, private
	}
	template.NotBefore = a.now.Add(-clockSkew)
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, fmt.Errorf("numbering the certificate of %s: %w", template.Subject, err)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, private.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("signing the certificate of %s: %w", template.Subject, err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the key of %s: %w", template.Subject, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}
