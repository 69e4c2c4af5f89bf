package fga

import (
	"context"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/entail-dev/entail/services/internal/backoff"
)

// lookUpAgain is the minimum time between two lookups. gRPC waits for 30 s after an answer, and up to two minutes after
// an error. A server with a new address would be unreachable for that long.
const lookUpAgain = 2 * time.Second

// names resolves names as gRPC does, but repeats the lookup soon after a failure.
type names struct {
	resolver.Builder
}

// lookUp returns the resolver for server names.
func lookUp() names { return names{resolver.Get(schemeDNS)} }

// Build implements [resolver.Builder].
func (n names) Build(target resolver.Target, conn resolver.ClientConn, options resolver.BuildOptions) (resolver.Resolver, error) {
	ctx, cancel := context.WithCancel(context.Background())
	l := &lookups{again: make(chan struct{}, 1), answered: make(chan struct{}, 1), cancel: cancel, ended: make(chan struct{})}
	look := func() (resolver.Resolver, error) { return n.Builder.Build(target, listener{conn, l}, options) }
	first, err := look()
	if err != nil {
		cancel()
		return nil, err
	}
	go l.runLookups(ctx, first, look)
	return l, nil
}

// lookups replaces its resolver for each lookup.
type lookups struct {
	// again holds an element if another lookup is wanted, and answered if the last lookup has ended.
	again, answered chan struct{}
	cancel          context.CancelFunc
	ended           chan struct{}
}

func (l *lookups) runLookups(ctx context.Context, current resolver.Resolver, look func() (resolver.Resolver, error)) {
	defer close(l.ended)
	for hasReceived(ctx, l.answered) && backoff.Sleep(ctx, lookUpAgain) && hasReceived(ctx, l.again) {
		current.Close()
		var err error
		if current, err = look(); err != nil {
			return // Unreachable: the same target was valid before.
		}
	}
	current.Close()
}

// hasReceived waits for an element of c and reports false if ctx ends first.
func hasReceived(ctx context.Context, c <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c:
		return true
	}
}

// trySend adds an element to c unless it is full.
func trySend(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// ResolveNow implements [resolver.Resolver].
func (l *lookups) ResolveNow(resolver.ResolveNowOptions) { trySend(l.again) }

// Close implements [resolver.Resolver].
func (l *lookups) Close() {
	l.cancel()
	<-l.ended
}

// listener receives the result of a lookup.
type listener struct {
	resolver.ClientConn
	lookups *lookups
}

// UpdateState implements [resolver.ClientConn].
func (l listener) UpdateState(state resolver.State) error {
	defer trySend(l.lookups.answered)
	err := l.ClientConn.UpdateState(state)
	if err != nil {
		trySend(l.lookups.again)
	}
	return err
}

// ReportError implements [resolver.ClientConn].
func (l listener) ReportError(err error) {
	defer trySend(l.lookups.answered)
	trySend(l.lookups.again)
	l.ClientConn.ReportError(err)
}
