package fga

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/fault"
)

const (
	// probeInterval bounds the time without an answer before a probe is sent.
	probeInterval = 3 * time.Second
	probeTimeout  = 3 * time.Second
	// maxSilence bounds the time without an answer during which the server still counts as healthy.
	maxSilence = 10 * time.Second
)

// serverHealth holds the time of the last answer, and the last error after it.
type serverHealth struct {
	mu    sync.Mutex
	heard time.Time
	err   error
}

// recordOutcome records the outcome of a call. An error about the request also counts as an answer.
func (h *serverHealth) recordOutcome(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err = err; !fault.IsUnavailable(err) {
		h.heard, h.err = time.Now(), nil
	}
}

func (h *serverHealth) timeSinceAnswer() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.heard)
}

func (h *serverHealth) healthErr() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch silent := time.Since(h.heard).Round(time.Second); {
	case h.heard.IsZero() && h.err == nil:
		return errors.New("has not answered yet")
	case h.heard.IsZero():
		return fmt.Errorf("has not answered yet: %w", h.err)
	case silent <= maxSilence:
		return nil
	case h.err == nil:
		return fmt.Errorf("has not answered for %s", silent)
	default:
		return fmt.Errorf("has not answered for %s: %w", silent, h.err)
	}
}

// RunProbes sends a call to the server whenever there was no answer for probeInterval, until ctx ends. It uses the
// same credentials as all other calls.
func (c *Client) RunProbes(ctx context.Context) error {
	for {
		if c.health.timeSinceAnswer() >= probeInterval {
			c.probeServer(ctx)
		}
		if !backoff.Sleep(ctx, probeInterval/3) {
			return nil
		}
	}
}

func (c *Client) probeServer(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	// The interceptor records the outcome.
	_, _ = c.api.ListStores(ctx, &openfgav1.ListStoresRequest{PageSize: wrapperspb.Int32(1)})
}

// HealthErr returns nil while the server answers.
func (c *Client) HealthErr() error { return c.health.healthErr() }
