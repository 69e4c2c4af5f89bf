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
		return transportTo(nil), nil
	}
	authorities, err := filewatch.Open(c.logger(), parseAuthorities, c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading --openfga-ca-file: %w", err)
	}
	return privateTLS{TransportCredentials: transportTo(authorities.Get()), authorities: authorities}, nil
}

func transportTo(authorities *x509.CertPool) credentials.TransportCredentials {
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities})
}

func parseAuthorities(contents ...[]byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(contents[0]) {
		return nil, errors.New("no PEM certificate in it")
	}
	return pool, nil
}

// privateTLS verifies each new connection with the current certificate authorities.
type privateTLS struct {
	credentials.TransportCredentials

	authorities *filewatch.Files[*x509.CertPool]
}

// ClientHandshake implements [credentials.TransportCredentials].
func (p privateTLS) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return transportTo(p.authorities.Get()).ClientHandshake(ctx, authority, conn)
}

// Clone implements [credentials.TransportCredentials].
func (p privateTLS) Clone() credentials.TransportCredentials { return p }

// tokens provides the token for each call. Its functions may be nil.
type tokens struct {
	get    func(context.Context) (Token, error)
	forget func()
}

// tokenRefused reports to the source that the server rejected the token.
func (t tokens) tokenRefused() {
	if t.forget != nil {
		t.forget()
	}
}

func (c Config) tokenSource() (tokens, error) {
	switch {
	case c.ClientID != "":
		transport, err := c.httpTransport()
		if err != nil {
			return tokens{}, err
		}
		transport.DisableKeepAlives = true // The next token request is far in the future.
		g, err := newGrant(c, &http.Client{Transport: transport})
		if err != nil {
			return tokens{}, err
		}
		return tokens{get: g.getToken, forget: g.forgetToken}, nil
	case c.Token != "":
		return tokens{get: func(context.Context) (Token, error) { return c.Token, nil }}, nil
	case c.TokenFile == "":
		return tokens{}, nil
	}
	file, err := filewatch.Open(c.logger(), parseToken, c.TokenFile)
	if err != nil {
		return tokens{}, fmt.Errorf("reading --openfga-token-file: %w", err)
	}
	return tokens{get: func(context.Context) (Token, error) { return file.Get(), nil }}, nil
}

func parseToken(contents ...[]byte) (Token, error) {
	token := strings.TrimSpace(string(contents[0]))
	if token == "" || len(token) > maxTokenBytes || strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("it must hold one line of at most %d bytes", maxTokenBytes)
	}
	return Token(token), nil
}

// bearer adds the token to each gRPC call.
type bearer struct {
	tokens    tokens
	plaintext bool
}

// GetRequestMetadata implements [credentials.PerRPCCredentials].
func (b bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := b.tokens.get(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + string(token)}, nil
}

// RequireTransportSecurity implements [credentials.PerRPCCredentials].
func (b bearer) RequireTransportSecurity() bool { return !b.plaintext }
