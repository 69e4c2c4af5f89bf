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
	// probeInterval is after how long without an answer the server is asked for one.
	probeInterval = 3 * time.Second
	probeTimeout  = 3 * time.Second
	// silence is how long the server may give no answer.
	silence = 10 * time.Second
)

// health is when the server last answered, and what is wrong since.
type health struct {
	mu    sync.Mutex
	heard time.Time
	err   error
}

// note takes the outcome of a call. What is about the request is an answer as good as any.
func (h *health) note(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err = err; !fault.IsUnavailable(err) {
		h.heard, h.err = time.Now(), nil
	}
}

func (h *health) silent() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.heard)
}

func (h *health) check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch silent := time.Since(h.heard).Round(time.Second); {
	case h.heard.IsZero() && h.err == nil:
		return errors.New("has not answered yet")
	case h.heard.IsZero():
		return fmt.Errorf("has not answered yet: %w", h.err)
	case silent <= silence:
		return nil
	case h.err == nil:
		return fmt.Errorf("has not answered for %s", silent)
	default:
		return fmt.Errorf("has not answered for %s: %w", silent, h.err)
	}
}

// Probe asks the server for a sign of life, with the credentials of every other call, whenever there
// was none for a while, until ctx ends.
func (c *Client) Probe(ctx context.Context) error {
	for {
		if c.health.silent() >= probeInterval {
			c.probe(ctx)
		}
		if !backoff.Sleep(ctx, probeInterval/3) {
			return nil
		}
	}
}

func (c *Client) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, _ = c.api.ListStores(ctx, &openfgav1.ListStoresRequest{PageSize: wrapperspb.Int32(1)}) // What comes of it is noted.
}

// Healthy is nil while the server answers.
func (c *Client) Healthy() error { return c.health.check() }
