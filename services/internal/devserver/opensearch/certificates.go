package opensearch

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	certificateLifetime = 10 * 365 * 24 * time.Hour
	// renewBefore is the remaining lifetime below which a start replaces the certificates.
	renewBefore = 30 * 24 * time.Hour
	clockSkew   = 5 * time.Minute
)

// Names in the certificates of the server and its administrator.
const (
	organization = "Entail"
	nodeName     = "node"
	adminName    = "admin"
	authority    = "ca"
)

// Certificate holds a certificate and its key, both in PEM.
type Certificate struct{ Certificate, Key []byte }

// credentials holds the certificates of the authority, the server and its administrator.
type credentials struct{ ca, node, admin Certificate }

// loadCredentials reads the credentials from dir. It replaces all of them if one is missing or expires soon.
func loadCredentials(dir string, now time.Time) (*credentials, error) {
	c := &credentials{}
	named := map[string]*Certificate{authority: &c.ca, nodeName: &c.node, adminName: &c.admin}
	valid := true
	for name, into := range named {
		var err error
		*into, err = readCertificate(dir, name, now)
		valid = valid && err == nil
	}
	if valid {
		return c, nil
	}
	if err := c.createCertificates(now); err != nil {
		return nil, err
	}
	for name, made := range named {
		if err := errors.Join(
			os.WriteFile(filepath.Join(dir, name+".pem"), made.Certificate, 0o600),
			os.WriteFile(filepath.Join(dir, name+"-key.pem"), made.Key, 0o600),
		); err != nil {
			return nil, fmt.Errorf("storing certificates: %w", err)
		}
	}
	return c, nil
}

func readCertificate(dir, name string, now time.Time) (Certificate, error) {
	certificate, err := os.ReadFile(filepath.Join(dir, name+".pem"))
	if err != nil {
		return Certificate{}, err
	}
	key, err := os.ReadFile(filepath.Join(dir, name+"-key.pem"))
	if err != nil {
		return Certificate{}, err
	}
	block, _ := pem.Decode(certificate)
	if block == nil {
		return Certificate{}, fmt.Errorf("no certificate in %s.pem", name)
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err == nil && now.Add(renewBefore).After(parsed.NotAfter) {
		err = fmt.Errorf("%s.pem is valid until %s", name, parsed.NotAfter)
	}
	return Certificate{certificate, key}, err
}

// createCertificates creates an authority and the certificates that it signs. The authority's key is not kept for
// further certificates.
func (c *credentials) createCertificates(now time.Time) error {
	root := &x509.Certificate{
		Subject: pkix.Name{CommonName: "OpenSearch of Entail", Organization: []string{organization}}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	node := &x509.Certificate{
		Subject:     pkix.Name{CommonName: nodeName, Organization: []string{organization}},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	admin := &x509.Certificate{
		Subject:     pkix.Name{CommonName: adminName, Organization: []string{organization}},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("creating certificates: %w", err)
	}
	for _, one := range []struct {
		template *x509.Certificate
		into     *Certificate
	}{{root, &c.ca}, {node, &c.node}, {admin, &c.admin}} {
		key := signer
		if one.template != root {
			if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
				return fmt.Errorf("creating certificates: %w", err)
			}
		}
		one.template.NotBefore, one.template.NotAfter = now.Add(-clockSkew), now.Add(certificateLifetime)
		if *one.into, err = signCertificate(one.template, root, key, signer); err != nil {
			return fmt.Errorf("creating certificate %s: %w", one.template.Subject, err)
		}
	}
	return nil
}

func signCertificate(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (Certificate, error) {
	var err error
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return Certificate{}, err
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Certificate{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Certificate{}, err
	}
	return Certificate{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}
