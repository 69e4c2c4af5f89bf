package fga

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/entail-dev/entail/services/internal/filewatch"
)

const maxTokenBytes = 8 << 10

func (c Config) transportCredentials() (credentials.TransportCredentials, error) {
	switch {
	case c.isPlaintext():
		return insecure.NewCredentials(), nil
	case c.CAFile == "":
		return newTLSCredentials(nil), nil
	}
	authorities, err := filewatch.Open(c.logger(), parseCertPool, c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading --openfga-ca-file: %w", err)
	}
	return reloadingTLS{TransportCredentials: newTLSCredentials(authorities.Get()), authorities: authorities}, nil
}

func newTLSCredentials(authorities *x509.CertPool) credentials.TransportCredentials {
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities})
}

func parseCertPool(contents ...[]byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(contents[0]) {
		return nil, errors.New("no PEM certificate in it")
	}
	return pool, nil
}

// reloadingTLS verifies each new connection with the current certificate authorities.
type reloadingTLS struct {
	credentials.TransportCredentials

	authorities *filewatch.Files[*x509.CertPool]
}

// ClientHandshake implements [credentials.TransportCredentials].
func (p reloadingTLS) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return newTLSCredentials(p.authorities.Get()).ClientHandshake(ctx, authority, conn)
}

// Clone implements [credentials.TransportCredentials].
func (p reloadingTLS) Clone() credentials.TransportCredentials { return p }

// tokenProvider provides the token for each call. get is nil if no token is configured, and forget is nil if tokens do
// not change.
type tokenProvider struct {
	get    func(context.Context) (Credential, error)
	forget func()
}

// discardRefusedToken discards the cached token, because the server rejected it.
func (t tokenProvider) discardRefusedToken() {
	if t.forget != nil {
		t.forget()
	}
}

func (c Config) newTokenProvider() (tokenProvider, error) {
	switch {
	case c.ClientID != "":
		transport, err := c.newHTTPTransport()
		if err != nil {
			return tokenProvider{}, err
		}
		transport.DisableKeepAlives = true // Token requests are rare, so no connection is kept.
		g, err := newOAuthTokenSource(c, &http.Client{Transport: transport})
		if err != nil {
			return tokenProvider{}, err
		}
		return tokenProvider{get: g.getToken, forget: g.forgetToken}, nil
	case c.PresharedKey != "":
		return tokenProvider{get: func(context.Context) (Credential, error) { return c.PresharedKey, nil }}, nil
	case c.PresharedKeyFile == "":
		return tokenProvider{}, nil
	}
	file, err := filewatch.Open(c.logger(), parseCredential, c.PresharedKeyFile)
	if err != nil {
		return tokenProvider{}, fmt.Errorf("reading --openfga-token-file: %w", err)
	}
	return tokenProvider{get: func(context.Context) (Credential, error) { return file.Get(), nil }}, nil
}

func parseCredential(contents ...[]byte) (Credential, error) {
	token := strings.TrimSpace(string(contents[0]))
	if token == "" || len(token) > maxTokenBytes || strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("it must hold one line of at most %d bytes", maxTokenBytes)
	}
	return Credential(token), nil
}

// bearerCredentials adds the token to each gRPC call.
type bearerCredentials struct {
	tokens    tokenProvider
	plaintext bool
}

// GetRequestMetadata implements [credentials.PerRPCCredentials].
func (b bearerCredentials) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := b.tokens.get(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + string(token)}, nil
}

// RequireTransportSecurity implements [credentials.PerRPCCredentials].
func (b bearerCredentials) RequireTransportSecurity() bool { return !b.plaintext }
