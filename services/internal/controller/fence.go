package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/entail-dev/entail/services/internal/fault"
)

// isRead reports whether an OpenFGA method changes nothing. An unknown method counts as a change.
func isRead(method string) bool {
	call := method[strings.LastIndexByte(method, '/')+1:]
	return slices.ContainsFunc([]string{"Read", "Get", "List", "Check", "BatchCheck", "Expand", "StreamedListObjects"}, func(read string) bool {
		return strings.HasPrefix(call, read)
	})
}

// turnKey is the context key of the turn of a pass.
type turnKey struct{}

// withTurn binds a context to a turn. A pass that outlives its turn decided from an old state, so it must write nothing
// more.
func withTurn(ctx context.Context, turn uint64) context.Context {
	return context.WithValue(ctx, turnKey{}, turn)
}

// leftOf implements [Elector.Left] for a request with a context.
func (p *Elector) leftOf(ctx context.Context) (time.Duration, error) {
	if turn, ok := ctx.Value(turnKey{}).(uint64); ok && !p.isCurrent(turn) {
		return 0, ErrNotActive
	}
	return p.Left()
}

// contextOfTurn returns a context that is cancelled when the turn is no longer surely ours, however often the claim is renewed
// meanwhile. A request that was sent may still take effect. The caller must call end.
func (p *Elector) contextOfTurn(ctx context.Context) (_ context.Context, end func(), err error) {
	left, err := p.leftOf(ctx)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex
	ended := false
	mu.Lock()
	defer mu.Unlock()
	var timer *time.Timer
	timer = time.AfterFunc(left, func() {
		mu.Lock()
		defer mu.Unlock()
		switch left, err := p.leftOf(ctx); {
		case ended:
		case err != nil:
			cancel(ErrNotActive)
		default:
			timer.Reset(left)
		}
	})
	return ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		timer.Stop()
	}, nil
}

// Guard returns a transport that sends changes only while the turn is surely ours.
func (p *Elector) Guard(next http.RoundTripper) http.RoundTripper { return guard{p, next} }

type guard struct {
	place *Elector
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method) {
		return g.next.RoundTrip(r)
	}
	ctx, end, err := g.place.contextOfTurn(r.Context())
	if err != nil {
		return nil, fault.Unavailable(fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err))
	}
	defer end()
	return g.next.RoundTrip(r.WithContext(ctx))
}

// GuardCalls returns the same guard for gRPC calls of OpenFGA.
func (p *Elector) GuardCalls() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		if isRead(method) {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		ctx, end, err := p.contextOfTurn(ctx)
		if err != nil {
			return status.Error(codes.Unavailable, fmt.Sprintf("%s: %v", method, err))
		}
		defer end()
		return invoke(ctx, method, req, reply, cc, opts...)
	})
}
