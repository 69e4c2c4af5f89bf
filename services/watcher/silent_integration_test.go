//go:build integration && nightly

package watcher_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// watchSilencer lets nothing more of one watch pass once it is told to.
type watchSilencer struct {
	mu sync.Mutex
	// bookmarked is closed when the watch has sent a bookmark, silent when it is to send nothing more.
	bookmarked, silent chan struct{}
	taken              bool
}

// silencingTransport is the transport of one client.
type silencingTransport struct {
	*watchSilencer

	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper]. It takes the first watch of Stores.
func (s silencingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && !s.taken && strings.HasSuffix(r.URL.Path, "/stores") && r.URL.Query().Get("watch") != "" {
		s.taken = true
		answer.Body = &silencedBody{answer.Body, s.watchSilencer, r, sync.OnceFunc(func() { close(s.bookmarked) })}
	}
	return answer, err
}

type silencedBody struct {
	io.ReadCloser

	by       *watchSilencer
	request  *http.Request
	bookmark func()
}

// Read implements [io.Reader].
func (b *silencedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	select {
	case <-b.by.silent:
		<-b.request.Context().Done()
		return 0, b.request.Context().Err()
	default:
	}
	if bytes.Contains(p[:n], []byte("BOOKMARK")) {
		b.bookmark()
	}
	return n, err
}

// All other watches go on, and reads are answered. The test waits two and a half minutes for bookmarks.
func TestSilentWatchIsDetected(t *testing.T) {
	b, s := newTestEnv(t), &watchSilencer{bookmarked: make(chan struct{}), silent: make(chan struct{})}
	kube := b.kube.ServiceConfig(t, topology.Watcher)
	kube.Wrap(func(next http.RoundTripper) http.RoundTripper { return silencingTransport{s, next} })
	b.runOn(kube)
	b.leads("first")
	<-s.bookmarked
	close(s.silent)
	b.apply("probe", "while the watch is silent")
	began, behind := time.Now(), time.Duration(0)
	testenv.Eventually(t, 3*time.Minute, func() error {
		h, _, err := b.p.LastBarrier(t.Context(), "local")
		if err != nil {
			return err
		}
		behind = max(behind, h.GetBehind().AsDuration())
		return b.equal()
	})
	t.Logf("on the bus after %s; barriers said up to %s", time.Since(began).Round(time.Millisecond), behind.Round(time.Millisecond))
	if behind < time.Minute {
		t.Errorf("barriers said %s behind at most: they vouched for the silent watch", behind)
	}
}
