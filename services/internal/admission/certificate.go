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
	// seed is what paths come from.
	seed []byte
}

// newCertificate makes one in place of another, if there is one.
func newCertificate(host string, validity time.Duration, before *certificate) (*certificate, error) {
	chain, key, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{Host: host, MaxAge: validity})
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	if before != nil {
		return parseCertificate(chain, key, before.seed)
	}
	return parseCertificate(chain, key, newSeed())
}

func parseCertificate(chain, key, seed []byte) (*certificate, error) {
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
	if len(seed) < seedSize {
		return nil, errors.New("reading the certificate: what paths come from is not with it")
	}
	return &certificate{pair: pair, chain: chain, key: key, authority: authority, seed: seed}, nil
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

// certificate is the one that all replicas share; one that is reached by its own URL has no others.
func (s *Server) certificate(ctx context.Context) (*certificate, error) {
	host := s.cfg.host()
	if s.cfg.URL != "" {
		if c := s.announced; c != nil && c.serves(host, time.Now(), s.validity) {
			return c, nil
		}
		return newCertificate(host, s.validity, s.announced)
	}
	secrets, name := s.kube.CoreV1().Secrets(s.options.Namespace), s.secret()
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the certificate in Secret %s: %w", name, err)
	}
	version, before := never, (*certificate)(nil)
	if err == nil {
		version = secret.ResourceVersion
		before, err = parseCertificate(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], secret.Data[seedKey])
		if err == nil && before.serves(host, time.Now(), s.validity) {
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
		_, err = secrets.Patch(ctx, name, types.ApplyPatchType, patch, s.applying())
	}
	if err != nil {
		return nil, fmt.Errorf("keeping the certificate in Secret %s: %w", name, err)
	}
	s.options.Log.InfoContext(ctx, "a certificate was made", slog.String("host", host), slog.Time("until", c.pair.Leaf.NotAfter))
	return c, nil
}

func (s *Server) secret() string { return s.options.Name + "-admission" }
