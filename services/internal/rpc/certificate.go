package rpc

import (
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/entail-dev/entail/services/internal/filewatch"
)

// CertificateFiles names a certificate and its key in PEM form. Each TLS handshake checks whether the files changed.
type CertificateFiles struct {
	Certificate, Key string
}

func (f CertificateFiles) tlsConfig(log *slog.Logger) (*tls.Config, error) {
	pair, err := filewatch.Open(log, parseKeyPair, f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("reading TLS certificate and key: %w", err)
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Get(), nil },
	}, nil
}

func parseKeyPair(contents ...[]byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	return &pair, err
}
