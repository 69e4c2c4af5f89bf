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
	"github.com/entail-dev/entail/services/internal/filewatch"
)

const (
	// maxIdleConns bounds idle connections for servers that support only HTTP/1. It is larger than the number of
	// workers of a service.
	maxIdleConns = 64
	idleTimeout  = 90 * time.Second
)

// newHTTPTransport returns the transport for the HTTP API or the token issuer. It respects HTTPS_PROXY.
func (c Config) newHTTPTransport() (*http.Transport, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		MaxIdleConns: maxIdleConns, MaxIdleConnsPerHost: maxIdleConns, IdleConnTimeout: idleTimeout,
		HTTP2:           &http.HTTP2Config{SendPingTimeout: keepaliveAfter, PingTimeout: keepaliveTimeout},
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if c.CAFile == "" {
		return t, nil
	}
	authorities, err := filewatch.Open(c.logger(), parseCertPool, c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading --openfga-ca-file: %w", err)
	}
	// This setting is used only through a proxy. It is read again only at a restart.
	t.TLSClientConfig.RootCAs = authorities.Get()
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialer := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities.Get(), NextProtos: []string{"h2", "http/1.1"}}}
		return dialer.DialContext(ctx, network, address)
	}
	return t, nil
}

// httpDialSettings returns the settings of a gRPC connection that is never opened: the last interceptor makes the
// calls over HTTP. All earlier interceptors, such as the fence of the lease, still run.
func (c Config) httpDialSettings(tokens tokenProvider) (dialSettings, error) {
	transport, err := c.newHTTPTransport()
	if err != nil {
		return dialSettings{}, err
	}
	api := httpapi.New(strings.TrimRight(c.Target, "/"), authorizingTransport{next: transport, tokens: tokens})
	return dialSettings{
		target:  "passthrough:///" + c.Target,
		options: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
		last:    []grpc.DialOption{grpc.WithChainUnaryInterceptor(api.Interceptor())},
		idle:    transport.CloseIdleConnections,
	}, nil
}

// authorizingTransport adds the gRPC metadata and the token to each request as headers. It also limits the size of the
// response.
type authorizingTransport struct {
	next   http.RoundTripper
	tokens tokenProvider
}

// RoundTrip implements [http.RoundTripper].
func (a authorizingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
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
