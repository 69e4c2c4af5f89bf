package fga

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/entail-dev/entail/services/internal/fga/httpapi"
	"github.com/entail-dev/entail/services/internal/reload"
)

const (
	// For servers that speak HTTP/1 only: as many as a service has workers, and some.
	maxIdleConns = 64
	idleTimeout  = 90 * time.Second
)

// httpTransport connects to what speaks HTTP: OpenFGA, or the issuer of tokens. It minds HTTPS_PROXY.
func (c Config) httpTransport() (*http.Transport, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		MaxIdleConns: maxIdleConns, MaxIdleConnsPerHost: maxIdleConns, IdleConnTimeout: idleTimeout,
		HTTP2:           &http.HTTP2Config{SendPingTimeout: keepaliveAfter, PingTimeout: keepaliveTimeout},
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if c.CAFile == "" {
		return t, nil
	}
	authorities, err := reload.Open(c.log(), parseAuthorities, c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading --openfga-ca-file: %w", err)
	}
	t.TLSClientConfig.RootCAs = authorities.Get() // For what a proxy leads to, until the next start.
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialer := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities.Get(), NextProtos: []string{"h2", "http/1.1"}}}
		return dialer.DialContext(ctx, network, address)
	}
	return t, nil
}

// httpWire makes of a connection one that is never opened: the last of its interceptors makes the calls.
// Whatever others put before it, as the check of who has the turn, sees them all the same.
func (c Config) httpWire(given tokens) (wire, error) {
	transport, err := c.httpTransport()
	if err != nil {
		return wire{}, err
	}
	api, err := httpapi.New(strings.TrimRight(c.Target, "/"), authorized{next: transport, tokens: given})
	if err != nil {
		return wire{}, err
	}
	return wire{
		target:  "passthrough:///" + c.Target,
		options: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
		last:    []grpc.DialOption{grpc.WithChainUnaryInterceptor(api.Interceptor())},
		idle:    transport.CloseIdleConnections,
	}, nil
}

// authorized adds to each request what gRPC calls metadata, its token among it, and bounds the answer.
type authorized struct {
	next   http.RoundTripper
	tokens tokens
}

// RoundTrip implements [http.RoundTripper].
func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	sent, _ := metadata.FromOutgoingContext(r.Context())
	for name, values := range sent {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if a.tokens.get != nil {
		token, err := a.tokens.get(r.Context())
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+string(token))
	}
	answer, err := a.next.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxMessageBytes)
	}
	return answer, err
}
