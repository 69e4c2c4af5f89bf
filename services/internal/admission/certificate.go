package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
)

const (
	// certificateValidity is the lifetime of a certificate. In the last third of its lifetime, a new certificate replaces
	// it.
	certificateValidity = 90 * 24 * time.Hour
	// maxAuthorities bounds the authorities that are registered at the same time.
	maxAuthorities = 3
)

// servingCertificate holds the server's certificate and the authority that signed it.
type servingCertificate struct {
	pair tls.Certificate
	// chain and key are PEM-encoded.
	chain, key []byte
	authority  *x509.Certificate
	// seed is the secret from which paths are derived.
	seed []byte
}

// newCertificate returns a new certificate. It keeps the seed of the previous certificate, if there is one.
func newCertificate(host string, validity time.Duration, before *servingCertificate) (*servingCertificate, error) {
	chain, key, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{Host: host, MaxAge: validity})
	if err != nil {
		return nil, fmt.Errorf("creating a certificate: %w", err)
	}
	if before != nil {
		return parseCertificate(chain, key, before.seed)
	}
	return parseCertificate(chain, key, newPathSeed())
}

func parseCertificate(chain, key, seed []byte) (*servingCertificate, error) {
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
		return nil, errors.New("reading the certificate: its authority is missing")
	}
	if len(seed) < seedSize {
		return nil, errors.New("reading the certificate: the seed of the secret path is missing")
	}
	return &servingCertificate{pair: pair, chain: chain, key: key, authority: authority, seed: seed}, nil
}

// isValidFor reports whether the certificate is for a host and has more than a third of its lifetime left.
func (c *servingCertificate) isValidFor(host string, now time.Time, validity time.Duration) bool {
	return c.pair.Leaf.VerifyHostname(host) == nil && now.Add(validity/3).Before(c.pair.Leaf.NotAfter)
}

// authorityBundle returns this certificate's authority, followed by the newest valid authorities of another bundle.
// The result has at most maxAuthorities.
func (c *servingCertificate) authorityBundle(before []byte, now time.Time) []byte {
	others, _ := cert.ParseCertsPEM(before) // An invalid bundle is ignored.
	others = slices.DeleteFunc(others, func(o *x509.Certificate) bool { return o.Equal(c.authority) || !o.IsCA || now.After(o.NotAfter) })
	slices.SortStableFunc(others, func(a, b *x509.Certificate) int { return b.NotBefore.Compare(a.NotBefore) })
	var bundle []byte
	for _, a := range append([]*x509.Certificate{c.authority}, others[:min(len(others), maxAuthorities-1)]...) {
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: a.Raw})...)
	}
	return bundle
}

// loadOrRenewCertificate returns the certificate that all replicas share in a Secret, and renews it if necessary. A
// server with its own URL has no other replicas, so it keeps its certificate in memory.
func (s *Server) loadOrRenewCertificate(ctx context.Context) (*servingCertificate, error) {
	host := s.cfg.hostName()
	if s.cfg.URL != "" {
		if c := s.announced; c != nil && c.isValidFor(host, time.Now(), s.validity) {
			return c, nil
		}
		return newCertificate(host, s.validity, s.announced)
	}
	secrets, name := s.kube.CoreV1().Secrets(s.options.Namespace), s.secretName()
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the certificate in Secret %s: %w", name, err)
	}
	version, before := nonexistentVersion, (*servingCertificate)(nil)
	if err == nil {
		version = secret.ResourceVersion
		before, err = parseCertificate(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], secret.Data[seedKey])
		if err == nil && before.isValidFor(host, time.Now(), s.validity) {
			return before, nil
		}
	}
	c, err := newCertificate(host, s.validity, before)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: c.chain, corev1.TLSPrivateKeyKey: c.key, seedKey: c.seed},
	})
	if err == nil {
		_, err = secrets.Patch(ctx, name, types.ApplyPatchType, patch, s.forceApplyOptions())
	}
	if err != nil {
		return nil, fmt.Errorf("storing the certificate in Secret %s: %w", name, err)
	}
	s.options.Log.InfoContext(ctx, "certificate created", slog.String("host", host), slog.Time("until", c.pair.Leaf.NotAfter))
	return c, nil
}

func (s *Server) secretName() string { return s.options.Name + "-admission" }
