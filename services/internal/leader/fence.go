package leader

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

// isReadMethod reports whether an OpenFGA method only reads. An unknown method counts as a write.
func isReadMethod(method string) bool {
	call := method[strings.LastIndexByte(method, '/')+1:]
	return slices.ContainsFunc([]string{"Read", "Get", "List", "Check", "BatchCheck", "Expand", "StreamedListObjects"}, func(read string) bool {
		return strings.HasPrefix(call, read)
	})
}

// termKey is the context key of the term of a reconciliation.
type termKey struct{}

// WithTerm binds a context to a term. Writes with this context fail after the term has ended, because they were
// decided from an old state.
func WithTerm(ctx context.Context, term uint64) context.Context {
	return context.WithValue(ctx, termKey{}, term)
}

// checkKey is the context key of the check of a reconciliation.
type checkKey struct{}

// WithCheck binds a context to a check. Writes with this context fail once the check fails, because the state from which
// they were decided no longer counts.
func WithCheck(ctx context.Context, check func() error) context.Context {
	return context.WithValue(ctx, checkKey{}, check)
}

// CheckErr returns the error of the check that a context is bound to, or nil.
func CheckErr(ctx context.Context) error {
	if check, ok := ctx.Value(checkKey{}).(func() error); ok {
		return check()
	}
	return nil
}

// leaseRemainingIn implements [Elector.LeaseRemaining] for a request whose context may be bound to a term.
func (e *Elector) leaseRemainingIn(ctx context.Context) (time.Duration, error) {
	if term, ok := ctx.Value(termKey{}).(uint64); ok && !e.IsCurrentTerm(term) {
		return 0, ErrNotLeader
	}
	return e.LeaseRemaining()
}

// newLeaseContext returns a context that is cancelled when the lease expires without a renewal, or when the context's
// term ends. A request that is already sent may still take effect, so a later failure of the context's check does not
// cancel it. The caller must call end.
func (e *Elector) newLeaseContext(ctx context.Context) (_ context.Context, end func(), err error) {
	if err := CheckErr(ctx); err != nil {
		return nil, nil, err
	}
	left, err := e.leaseRemainingIn(ctx)
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
		switch left, err := e.leaseRemainingIn(ctx); {
		case ended:
		case err != nil:
			cancel(ErrNotLeader)
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

// FenceTransport returns a transport that sends writes only while this replica is certainly the leader.
func (e *Elector) FenceTransport(next http.RoundTripper) http.RoundTripper {
	return fencedTransport{e, next}
}

type fencedTransport struct {
	elector *Elector
	next    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t fencedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method) {
		return t.next.RoundTrip(r)
	}
	ctx, end, err := t.elector.newLeaseContext(r.Context())
	if err != nil {
		return nil, fault.Unavailable(fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err))
	}
	defer end()
	return t.next.RoundTrip(r.WithContext(ctx))
}

// FenceDialOption returns a dial option with the same fence for gRPC calls of OpenFGA.
func (e *Elector) FenceDialOption() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		if isReadMethod(method) {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		ctx, end, err := e.newLeaseContext(ctx)
		if err != nil {
			return status.Error(codes.Unavailable, fmt.Sprintf("%s: %v", method, err))
		}
		defer end()
		return invoke(ctx, method, req, reply, cc, opts...)
	})
}
