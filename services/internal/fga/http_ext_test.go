package fga_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/entail-dev/entail/services/internal/devserver/embedded"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// startHTTPProxy starts a proxy in front of a server's HTTP API. do receives a handler next, which forwards a request.
func startHTTPProxy(t *testing.T, do func(w http.ResponseWriter, r *http.Request, next http.Handler), certificate ...tls.Certificate) string {
	t.Helper()
	behind, err := url.Parse(start(t, embedded.OpenFGAConfig{}).URL())
	if err != nil {
		t.Fatal(err)
	}
	next := httputil.NewSingleHostReverseProxy(behind)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { do(w, r, next) }))
	if t.Cleanup(server.Close); len(certificate) == 0 {
		server.Start()
		return server.URL
	}
	server.TLS, server.EnableHTTP2 = &tls.Config{Certificates: certificate}, true
	server.Config.ErrorLog = nil
	server.StartTLS()
	return server.URL
}

func TestHTTPVerifiesServerCertificate(t *testing.T) {
	certificate, authority := selfSigned(t)
	_, other := selfSigned(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	replaceFileContent(t, file, string(other))
	var version atomic.Value
	target := startHTTPProxy(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		version.Store(r.Proto)
		next.ServeHTTP(w, r)
	}, certificate)
	client := connect(t, fga.Config{Target: target, CAFile: file})
	if _, err := client.CreateStore(t.Context(), "test"); !fault.IsUnavailable(err) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("under another authority: %v", err)
	}
	replaceFileContent(t, file, string(authority))
	if _, err := client.CreateStore(t.Context(), "test"); err != nil || version.Load() != "HTTP/2.0" {
		t.Errorf("under the server's: %v, over %v", err, version.Load())
	}
}

func TestHTTPWaitsForRateLimit(t *testing.T) {
	for name, after := range map[string]string{"for as long as it says": "1", "for a second if it does not": "", "until the moment it says": "date"} {
		t.Run(name, func(t *testing.T) {
			var refused, passed atomic.Int64
			target := startHTTPProxy(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if refused.CompareAndSwap(0, time.Now().UnixNano()) {
					if after == "date" {
						w.Header().Set("Retry-After", time.Now().Add(3*time.Second).UTC().Format(http.TimeFormat))
					} else if after != "" {
						w.Header().Set("Retry-After", after)
					}
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				passed.CompareAndSwap(0, time.Now().UnixNano())
				next.ServeHTTP(w, r)
			})
			client := connect(t, fga.Config{Target: target})
			if _, err := client.CreateStore(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
			if waited := time.Duration(passed.Load() - refused.Load()); waited < time.Second {
				t.Errorf("repeated after %s", waited)
			}
		})
	}
}

func TestHTTPHonorsRetryAfter(t *testing.T) {
	var asked atomic.Int64
	target := startHTTPProxy(t, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		asked.Add(1)
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	client := connect(t, fga.Config{Target: target, Timeout: 5 * time.Second})
	if _, err := client.CreateStore(t.Context(), "test"); !fault.IsUnavailable(err) || asked.Load() != 1 {
		t.Errorf("got %d requests, %v; a call that may have succeeded must not be repeated", asked.Load(), err)
	}
	for range 3 {
		if _, err := client.CreateStore(t.Context(), "test"); !fault.IsUnavailable(err) || !strings.Contains(err.Error(), "asked for no calls for another") {
			t.Errorf("within that time: %v", err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("got %d requests", asked.Load())
	}
}

func TestHTTPForeignServerIsUnavailable(t *testing.T) {
	const secret = "only-for-this-test"
	var led atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { led.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"a page": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>" + secret)) },
		"a page as JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("<html>"))
		},
		"no such page": http.NotFound,
		"another server": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"no such method":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, secret, http.StatusMethodNotAllowed) },
		"a broken gateway":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, secret, http.StatusBadGateway) },
		"nobody of its own": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, secret, http.StatusForbidden) },
		"an endless answer": func(w http.ResponseWriter, _ *http.Request) {
			for some := []byte(strings.Repeat(" ", 1<<20)); ; {
				if _, err := w.Write(some); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			target := startHTTPProxy(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) { answer(w, r) })
			client := connect(t, fga.Config{Target: target, PresharedKey: secret})
			if _, err := client.CreateStore(t.Context(), "test"); !fault.IsUnavailable(err) || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v", err)
			}
		})
	}
	if led.Load() != 0 {
		t.Error("the token was taken to another server")
	}
}

func TestHTTPCallsPassInterceptors(t *testing.T) {
	var arrived atomic.Int64
	var traced atomic.Value
	target := startHTTPProxy(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		arrived.Add(1)
		traced.Store(r.Header.Get("Traceparent"))
		next.ServeHTTP(w, r)
	})
	var closed atomic.Bool
	guard := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if closed.Load() {
			return status.Error(codes.Unavailable, "not our turn")
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	provider := trace.NewTracerProvider()
	client, err := fga.Dial(fga.Config{Target: target, Tracer: provider}, grpc.WithChainUnaryInterceptor(guard))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, span := provider.Tracer("test").Start(t.Context(), "change")
	if _, err := client.CreateStore(ctx, "test"); err != nil {
		t.Fatal(err)
	}
	if got, _ := traced.Load().(string); !strings.Contains(got, span.SpanContext().TraceID().String()) {
		t.Errorf("got trace %q at the server", got)
	}
	before := arrived.Load()
	closed.Store(true)
	if _, err := client.CreateStore(t.Context(), "test"); !fault.IsUnavailable(err) || arrived.Load() != before {
		t.Errorf("a call left without its turn: %v", err)
	}
}

func TestHTTPReconnectsToServer(t *testing.T) {
	var away atomic.Bool
	target := startHTTPProxy(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if away.Load() {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = conn.Close()
			}
			return
		}
		next.ServeHTTP(w, r)
	})
	client := connect(t, fga.Config{Target: target})
	for range 3 {
		away.Store(true)
		if _, err := client.CreateStore(t.Context(), "test"); !fault.IsUnavailable(err) {
			t.Errorf("cut off: %v", err)
		}
		away.Store(false)
		testenv.Eventually(t, time.Minute, func() error {
			_, err := client.CreateStore(t.Context(), "test")
			return errors.Unwrap(err)
		})
	}
}

// An answer that is cut off, or that comes from another server, must not look like an empty result.
func TestHTTPTruncatedAnswerIsError(t *testing.T) {
	for name, answer := range map[string]string{
		"cut off at once": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
		"cut off":         "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"stores\":[],\"tuples\":[]",
		"nothing":         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"of another":      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"status\":\"ok\"}",
	} {
		t.Run(name, func(t *testing.T) {
			var away atomic.Bool
			client := connect(t, fga.Config{Target: startHTTPProxy(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if !away.Load() {
					next.ServeHTTP(w, r)
				} else if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
					_, _ = conn.Write([]byte(answer))
					_ = conn.Close()
				}
			})})
			store, err := client.CreateStore(t.Context(), "test")
			if err != nil {
				t.Fatal(err)
			}
			away.Store(true)
			_, created := client.CreateStore(t.Context(), "test")
			_, listed := client.FindStores(t.Context(), "test")
			_, modelled := client.ReadLatestModel(t.Context(), store)
			_, _, read := client.ReadTuplePage(t.Context(), store, 10, "")
			for what, err := range map[string]error{"a store": created, "stores": listed, "models": modelled, "tuples": read} {
				if !fault.IsUnavailable(err) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}
