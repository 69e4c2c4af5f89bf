package testenv

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/setup"
)

// RunningService is a service that runs in the test's process.
type RunningService struct {
	// URL is the address of the service's API.
	URL string
	// Stop stops the service. The test fails if the service returns an error. Stop is called automatically at the end
	// of the test.
	Stop func()
}

// ListenLoopback returns a listener on a free loopback port.
func ListenLoopback(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// ConfigureService configures the named service for the servers of b, which count its calls. cfg may be part of a
// larger configuration that embeds [service.Config].
func (b *Env) ConfigureService(name string, cfg *service.Config) net.Listener {
	b.T.Helper()
	listener := ListenLoopback(b.T)
	cfg.NATS.URL = b.NATS.URLOf(name)
	cfg.RPC.Auth, cfg.RPC.Listen = rpc.AuthNone, listener.Addr().String()
	cfg.Embed.Kube, cfg.Embed.Listener = b.Kube.ServiceConfig(b.T, name), listener
	cfg.Embed.Log = slog.New(slog.NewTextHandler(b.T.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	return listener
}

// ShortenWaits shortens the wait after a takeover and the wait before a retry. Use it only in tests in which no
// request of a former leader can take effect late.
func ShortenWaits(cfg *setup.Config) {
	cfg.Takeover.SettlingTime, cfg.MaxDelay = 2*time.Second, time.Second
}

// Serve runs a service for the test of b; see [Serve].
func (b *Env) Serve(listener net.Listener, run func(context.Context) error) *RunningService {
	b.T.Helper()
	return Serve(b.T, listener, run)
}

// Serve runs a service on a listener until Stop is called or the test ends.
func Serve(t testing.TB, listener net.Listener, run func(context.Context) error) *RunningService {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the service ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return &RunningService{URL: "http://" + listener.Addr().String(), Stop: stop}
}

// MetricValue returns the value of a series, which is written as name{labels}. It returns 0 if the series does not
// exist.
func (r *RunningService) MetricValue(t testing.TB, series string) (value float64) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if text, is := strings.CutPrefix(lines.Text(), series+" "); is {
			if value, err = strconv.ParseFloat(text, 64); err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	return 0
}
