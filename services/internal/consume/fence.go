package consume

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/entail-dev/entail/services/internal/fault"
)

// readMethods and readCalls are how requests begin that change nothing, of HTTP and of OpenFGA's
// API. All others are changes.
var (
	readMethods = []string{http.MethodGet, http.MethodHead, http.MethodOptions}
	readCalls   = []string{"Read", "Get", "List", "Check", "BatchCheck", "Expand", "StreamedListObjects"}
)

// within gives a change no more time than the place is ours for. Its end must be called.
func (p *Place) within(ctx context.Context) (_ context.Context, end func(), err error) {
	left, err := p.Left()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(left, func() { cancel(ErrNotActive) })
	return ctx, func() { timer.Stop() }, nil
}

// Guard makes sure that changes by HTTP are made only while the place is ours.
func (p *Place) Guard(next http.RoundTripper) http.RoundTripper { return guard{p, next} }

type guard struct {
	place *Place
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, method := range readMethods {
		if r.Method == method {
			return g.next.RoundTrip(r)
		}
	}
	ctx, end, err := g.place.within(r.Context())
	if err != nil {
		return nil, fault.Unavailable(fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err))
	}
	defer end()
	return g.next.RoundTrip(r.WithContext(ctx))
}

// GuardCalls does the same for calls of OpenFGA.
func (p *Place) GuardCalls() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		call := method[strings.LastIndexByte(method, '/')+1:]
		for _, read := range readCalls {
			if strings.HasPrefix(call, read) {
				return invoke(ctx, method, req, reply, cc, opts...)
			}
		}
		ctx, end, err := p.within(ctx)
		if err != nil {
			return status.Error(codes.Unavailable, fmt.Sprintf("%s: %v", call, err))
		}
		defer end()
		return invoke(ctx, method, req, reply, cc, opts...)
	})
}
