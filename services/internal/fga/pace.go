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

// A server can have itself left alone for no shorter and no longer than this.
const (
	minPause = 100 * time.Millisecond
	maxPause = time.Minute
)

// pace keeps calls off a server that asked to be left alone, as one does that limits their rate.
type pace struct {
	mu    sync.Mutex
	until time.Time
}

// interceptor makes a call again that the server was too busy for, within the call's time. What may have
// been carried out is not repeated: that is for whoever knows what it was.
func (p *pace) interceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		for {
			if err := p.wait(ctx); err != nil {
				return err
			}
			err := invoke(ctx, method, req, reply, cc, opts...)
			if !p.hold(err) || status.Code(err) != codes.ResourceExhausted {
				return err
			}
		}
	}
}

// wait returns when calls may be made, or at once if that is too late for this one.
func (p *pace) wait(ctx context.Context) error {
	p.mu.Lock()
	pause := time.Until(p.until)
	p.mu.Unlock()
	if pause <= 0 {
		return nil
	}
	deadline, limited := ctx.Deadline()
	if limited && time.Until(deadline) <= pause || !backoff.Sleep(ctx, pause) {
		return status.Error(codes.Unavailable, fmt.Sprintf("it takes no calls for another %s, it said", pause.Round(time.Millisecond)))
	}
	return nil
}

// hold notes what an error says of the time until the next call; false when it says nothing.
func (p *pace) hold(err error) bool {
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
