package testenv

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/entail-dev/entail/services/internal/devserver/opensearch"
)

// openSearchProxy is a proxy in front of OpenSearch with the server's own certificate. It sends the requests of a
// client with the administrator's certificate as the administrator. Other clients use their password.
type openSearchProxy struct {
	url    string
	server *http.Server
	ended  chan struct{}
	ways   []*http.Transport
}

func newOpenSearchProxy(traffic *Traffic, server *opensearch.Server) (*openSearchProxy, error) {
	back, err := url.Parse(server.URL())
	if err != nil {
		return nil, err
	}
	admin, err := newTransport(server, true)
	if err != nil {
		return nil, err
	}
	anybody, err := newTransport(server, false)
	if err != nil {
		return nil, err
	}
	node := server.NodeCertificate()
	pair, err := tls.X509KeyPair(node.Certificate, node.Key)
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(server.CACertificate())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &openSearchProxy{url: "https://" + listener.Addr().String(), ended: make(chan struct{}), ways: []*http.Transport{admin, anybody}}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(back) },
		Transport: proxyTransport{traffic: traffic, admin: admin, anybody: anybody},
		ErrorLog:  log.New(io.Discard, "", 0), // The clients report the errors.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) //nolint:forbidigo // So the connection breaks, as one to the server would.
		},
	}
	f.server = &http.Server{
		Handler: proxy, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: searchAnswerWithin,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12,
		},
	}
	go func() {
		defer close(f.ended)
		_ = f.server.ServeTLS(listener, "", "") // ServeTLS returns after stopProxy.
	}()
	return f, nil
}

func newTransport(server *opensearch.Server, admin bool) (*http.Transport, error) {
	cfg, err := server.ClientTLSConfig(admin)
	if err != nil {
		return nil, err
	}
	return &http.Transport{TLSClientConfig: cfg, MaxIdleConnsPerHost: 16}, nil
}

func (f *openSearchProxy) stopProxy(context.Context) error {
	err := f.server.Close()
	<-f.ended
	for _, w := range f.ways {
		w.CloseIdleConnections()
	}
	return err
}

// InjectedResponseError returns a fault that answers instead of the server, as an overloaded or broken server would.
func InjectedResponseError(status int, body string) error {
	return &injectedResponseError{status, body}
}

type injectedResponseError struct {
	status int
	body   string
}

// Error returns the status and the body of the answer.
func (a *injectedResponseError) Error() string { return http.StatusText(a.status) + ": " + a.body }

// toResponse returns the answer as the response to a request.
func (a *injectedResponseError) toResponse(r *http.Request) *http.Response {
	return &http.Response{
		StatusCode: a.status, Request: r, Body: io.NopCloser(strings.NewReader(a.body)),
		Header: http.Header{"Content-Type": {"application/json"}},
	}
}

// proxyTransport passes requests to OpenSearch through [Traffic].
type proxyTransport struct {
	traffic        *Traffic
	admin, anybody http.RoundTripper
}

// RoundTrip sends one request. [Traffic] counts it under an operation such as "PUT internalusers/anne" for the
// security API, and "GET /path" otherwise.
func (f proxyTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	next := f.anybody
	if request.TLS != nil && len(request.TLS.VerifiedChains) > 0 {
		next = f.admin
	}
	op := request.Method + " " + strings.TrimPrefix(request.URL.EscapedPath(), securityAPI)
	// A cleared cache does not change stored state.
	writes := request.Method != http.MethodGet && request.Method != http.MethodHead && op != "DELETE cache"
	var response *http.Response
	err := f.traffic.passCall(request.Context(), op, writes, func() (err error) {
		response, err = next.RoundTrip(request) //nolint:bodyclose // It is the caller's to close.
		return err
	})
	return clientOutcome(request, response, err)
}
