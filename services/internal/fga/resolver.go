package fga

import (
	"context"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/entail-dev/entail/services/internal/backoff"
)

// minLookupInterval is the minimum time between two DNS lookups. gRPC's own resolver waits 30 s after an answer and up
// to two minutes after an error. This is too long if a server gets a new address.
const minLookupInterval = 2 * time.Second

// dnsBuilder resolves names with gRPC's resolver, but repeats the lookup soon after a failure.
type dnsBuilder struct {
	resolver.Builder
}

// Build implements [resolver.Builder].
func (n dnsBuilder) Build(target resolver.Target, conn resolver.ClientConn, options resolver.BuildOptions) (resolver.Resolver, error) {
	ctx, cancel := context.WithCancel(context.Background())
	l := &repeatingResolver{again: make(chan struct{}, 1), answered: make(chan struct{}, 1), cancel: cancel, ended: make(chan struct{})}
	look := func() (resolver.Resolver, error) { return n.Builder.Build(target, resultListener{conn, l}, options) }
	first, err := look()
	if err != nil {
		cancel()
		return nil, err
	}
	go l.repeatLookups(ctx, first, look)
	return l, nil
}

// repeatingResolver uses a new gRPC resolver for each lookup.
type repeatingResolver struct {
	// again holds an element if another lookup is requested. answered holds an element if the last lookup has ended.
	again, answered chan struct{}
	cancel          context.CancelFunc
	ended           chan struct{}
}

func (l *repeatingResolver) repeatLookups(ctx context.Context, current resolver.Resolver, look func() (resolver.Resolver, error)) {
	defer close(l.ended)
	for receiveOrDone(ctx, l.answered) && backoff.Sleep(ctx, minLookupInterval) && receiveOrDone(ctx, l.again) {
		current.Close()
		var err error
		if current, err = look(); err != nil {
			return // This cannot happen: the same target was valid before.
		}
	}
	current.Close()
}

// receiveOrDone waits for an element of c. It returns false if ctx ends first.
func receiveOrDone(ctx context.Context, c <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c:
		return true
	}
}

// signalChannel adds an element to c unless c is full.
func signalChannel(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// ResolveNow implements [resolver.Resolver].
func (l *repeatingResolver) ResolveNow(resolver.ResolveNowOptions) { signalChannel(l.again) }

// Close implements [resolver.Resolver].
func (l *repeatingResolver) Close() {
	l.cancel()
	<-l.ended
}

// resultListener receives the result of a lookup.
type resultListener struct {
	resolver.ClientConn
	lookups *repeatingResolver
}

// UpdateState implements [resolver.ClientConn].
func (l resultListener) UpdateState(state resolver.State) error {
	defer signalChannel(l.lookups.answered)
	err := l.ClientConn.UpdateState(state)
	if err != nil {
		signalChannel(l.lookups.again)
	}
	return err
}

// ReportError implements [resolver.ClientConn].
func (l resultListener) ReportError(err error) {
	defer signalChannel(l.lookups.answered)
	signalChannel(l.lookups.again)
	l.ClientConn.ReportError(err)
}
