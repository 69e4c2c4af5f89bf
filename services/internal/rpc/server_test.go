package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
)

func TestServerSpeaksEveryProtocol(t *testing.T) {
	tr := serve(t, nil, fakeStoreService{}.handler())
	h2c := &http.Transport{Protocols: new(http.Protocols)}
	h2c.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(h2c.CloseIdleConnections)
	over := map[string]*http.Client{"HTTP/1.1": tr.client, "HTTP/2": {Transport: h2c}}
	tests := map[string]struct {
		http   string
		option connect.ClientOption
	}{
		"Connect over HTTP/1.1":  {"HTTP/1.1", connect.WithClientOptions()},
		"JSON over HTTP/1.1":     {"HTTP/1.1", connect.WithProtoJSON()},
		"gRPC-Web over HTTP/1.1": {"HTTP/1.1", connect.WithGRPCWeb()},
		"Connect over HTTP/2":    {"HTTP/2", connect.WithClientOptions()},
		"gRPC over HTTP/2":       {"HTTP/2", connect.WithGRPC()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := storev1connect.NewStoreServiceClient(over[test.http], tr.url, test.option)
			got, err := client.GetStore(t.Context(), &storev1.GetStoreRequest{Name: "demo"})
			if err != nil || got.GetStore().GetName() != "demo" {
				t.Fatalf("got %v, %v", got, err)
			}
		})
	}
}

func TestProbesReportState(t *testing.T) {
	var missing error
	tr := serve(t, func(c *Config) { c.Ready = func() error { return missing } }, fakeStoreService{}.handler())
	for _, missing = range []error{nil, errors.New("view: stores are missing"), nil} {
		wantStatus, wantText, wantHealth := http.StatusOK, "ok", healthv1.HealthCheckResponse_SERVING
		if missing != nil {
			wantStatus, wantText, wantHealth = http.StatusServiceUnavailable, missing.Error(), healthv1.HealthCheckResponse_NOT_SERVING
		}
		if status, text := tr.get(t, "/healthz"); status != http.StatusOK || text != "ok" {
			t.Errorf("healthz: %d %s", status, text)
		}
		if status, text := tr.get(t, "/readyz"); status != wantStatus || text != wantText {
			t.Errorf("readyz: %d %s, want %d %s", status, text, wantStatus, wantText)
		}
		for _, service := range []string{"", storev1connect.StoreServiceName, grpchealth.HealthV1ServiceName} {
			if got := tr.health(t, service); got != wantHealth {
				t.Errorf("health of %q is %v, want %v", service, got, wantHealth)
			}
		}
	}
	if status, text := tr.get(t, "/metrics"); status != http.StatusOK || !strings.Contains(text, "entail_rpc_duration_seconds_count") {
		t.Errorf("metrics: %d %s", status, text)
	}
}

func (tr *runningServer) get(t *testing.T, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tr.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := tr.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(body))
}

// health sends a health check as any gRPC client would.
func (tr *runningServer) health(t *testing.T, service string) healthv1.HealthCheckResponse_ServingStatus {
	t.Helper()
	conn, err := grpc.NewClient(tr.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answer, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetStatus()
}

func TestReflectionListsServicesMountedLater(t *testing.T) {
	tr := serve(t, nil)
	if err := tr.Mount(fakeStoreService{}.handler()); err != nil {
		t.Fatal(err)
	}
	h2c := &http.Transport{Protocols: new(http.Protocols)}
	h2c.Protocols.SetUnencryptedHTTP2(true)
	defer h2c.CloseIdleConnections()
	stream := grpcreflect.NewClient(&http.Client{Transport: h2c}, tr.url, connect.WithGRPC()).NewStream(t.Context())
	names, err := stream.ListServices()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, storev1connect.StoreServiceName) {
		t.Fatalf("reflection lists %v", names)
	}
}

func TestMountRefusesInvalidHandlers(t *testing.T) {
	lacking := fakeStoreService{}.handler()
	delete(lacking.access, storev1connect.StoreServiceGetModelProcedure)
	tests := map[string]struct {
		handlers []Handler
		want     string
	}{
		"no rule":    {[]Handler{lacking}, "/entail.store.v1.StoreService/GetModel has no access rule"},
		"twice":      {[]Handler{fakeStoreService{}.handler(), fakeStoreService{}.handler()}, "mounted twice"},
		"no service": {[]Handler{{service: "entail.none.v1.NoService"}}, "entail.none.v1.NoService"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := serve(t, nil).Mount(test.handlers...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestNewRefusesInvalidSettings(t *testing.T) {
	taken := loopbackListener(t)
	defer taken.Close()
	tests := map[string]struct {
		change func(*Config)
		want   string
	}{
		"everybody on every address": {func(c *Config) { c.Address = "0.0.0.0:0" }, "for loopback only"},
		"everybody on no host":       {func(c *Config) { c.Address = ":0" }, "for loopback only"},
		"unknown authentication":     {func(c *Config) { c.Auth = "password" }, `"password" is unknown`},
		"no authentication":          {func(c *Config) { c.Auth = "" }, `use "kubernetes" or "none"`},
		"nobody to ask":              {func(c *Config) { c.Auth = AuthKubernetes }, "needs an API server"},
		"address taken":              {func(c *Config) { c.Address = taken.Addr().String() }, "address already in use"},
		"no such certificate":        {func(c *Config) { c.TLS = CertificateFiles{"/nowhere/tls.crt", "/nowhere/tls.key"} }, "/nowhere/tls.crt"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Address: "127.0.0.1:0", Auth: AuthNone, Log: (&concurrentLog{}).logger(), Metrics: prometheus.NewRegistry()}
			test.change(&cfg)
			if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestUnauthenticatedServerRequiresLoopbackHost(t *testing.T) {
	tr := serve(t, nil, fakeStoreService{}.handler())
	_, port, err := net.SplitHostPort(tr.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"127.0.0.1:" + port: http.StatusOK, "localhost:" + port: http.StatusOK, "localhost": http.StatusOK, "[::1]:" + port: http.StatusOK,
		"evil.example:" + port: http.StatusForbidden, "10.0.0.1": http.StatusForbidden, "localhost.evil.example": http.StatusForbidden,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tr.url+storev1connect.StoreServiceListStoresProcedure, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		request.Header.Set("Content-Type", "application/json")
		response, err := tr.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("host %s: status %s, want %d", host, response.Status, want)
		}
	}
}

func TestStopFinishesRunningCalls(t *testing.T) {
	entered, finish := make(chan struct{}), make(chan struct{})
	tr := serve(t, nil, fakeStoreService{get: func(context.Context, *storev1.GetStoreRequest) (*storev1.GetStoreResponse, error) {
		close(entered)
		<-finish
		return &storev1.GetStoreResponse{Store: &storev1.Store{Name: "late"}}, nil
	}}.handler())
	answer := make(chan string, 1)
	go func() {
		got, err := tr.stores().GetStore(context.WithoutCancel(t.Context()), &storev1.GetStoreRequest{Name: "demo"})
		if err != nil {
			answer <- err.Error()
			return
		}
		answer <- got.GetStore().GetName()
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- tr.stop() }()
	tr.untilRefused(t)
	close(finish)
	if got := <-answer; got != "late" {
		t.Errorf("the running call got %q", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stopping: %v", err)
	}
}

// untilRefused waits until the server refuses new connections.
func (tr *runningServer) untilRefused(t *testing.T) {
	t.Helper()
	for {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", tr.Addr().String())
		if err != nil {
			return
		}
		conn.Close()
	}
}

func TestCertificateIsReloaded(t *testing.T) {
	files := newFiles(t)
	files.write(t, "first")
	tr := serve(t, func(c *Config) { c.TLS = files.CertificateFiles })
	if got := tr.certificate(t); got != "first" {
		t.Fatalf("certificate is %q", got)
	}
	files.write(t, "second")
	if got := tr.certificate(t); got != "second" {
		t.Fatalf("certificate is %q after the change", got)
	}
	files.writeCertificate(t, []byte("half of a file"))
	if got := tr.certificate(t); got != "second" || !strings.Contains(tr.log.String(), "their previous content stays in use") {
		t.Fatalf("certificate is %q while the file is broken; log %s", got, tr.log)
	}
	files.write(t, "third")
	if got := tr.certificate(t); got != "third" {
		t.Fatalf("certificate is %q after the repair", got)
	}
}

// certificate returns the name in the certificate that the server presents.
func (tr *runningServer) certificate(t *testing.T) string {
	t.Helper()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}
	conn, err := dialer.DialContext(t.Context(), "tcp", tr.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	state := conn.(*tls.Conn).ConnectionState()
	if state.NegotiatedProtocol != "h2" {
		t.Errorf("negotiated %q, want h2", state.NegotiatedProtocol)
	}
	return state.PeerCertificates[0].Subject.CommonName
}
