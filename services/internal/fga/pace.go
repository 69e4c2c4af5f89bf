package fga

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/entail-dev/entail/services/internal/backoff"
)

// Bounds of the pause that a server can request.
const (
	minPause = 100 * time.Millisecond
	maxPause = time.Minute
)

// serverPause delays calls to a server that requested a pause, for example because of a rate limit.
type serverPause struct {
	mu    sync.Mutex
	until time.Time
}

// retryInterceptor repeats a call that the server refused because of its load, within the deadline of the call. It
// does not repeat a call that may have been executed, because only the caller can decide that.
func (p *serverPause) retryInterceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		for {
			if err := p.waitUntilAllowed(ctx); err != nil {
				return err
			}
			err := invoke(ctx, method, req, reply, cc, opts...)
			if !p.recordRequestedPause(err) || status.Code(err) != codes.ResourceExhausted {
				return err
			}
		}
	}
}

// waitUntilAllowed blocks until the pause has ended. It returns an error at once if the deadline of ctx is earlier.
func (p *serverPause) waitUntilAllowed(ctx context.Context) error {
	p.mu.Lock()
	pause := time.Until(p.until)
	p.mu.Unlock()
	if pause <= 0 {
		return nil
	}
	deadline, limited := ctx.Deadline()
	if limited && time.Until(deadline) <= pause || !backoff.Sleep(ctx, pause) {
		return status.Error(codes.Unavailable, fmt.Sprintf("it asked for no calls for another %s", pause.Round(time.Millisecond)))
	}
	return nil
}

// recordRequestedPause stores the pause that an error requests. It reports whether the error requests one.
func (p *serverPause) recordRequestedPause(err error) bool {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			pause := min(max(info.GetRetryDelay().AsDuration(), minPause), maxPause)
			p.mu.Lock()
			defer p.mu.Unlock()
			if until := time.Now().Add(pause); until.After(p.until) {
				p.until = until
			}
			return true
		}
	}
	return false
}
