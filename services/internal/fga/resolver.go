package fga

import (
	"context"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/entail-dev/entail/services/internal/backoff"
)

// lookUpAgain is how soon after a look at a name there may be another. gRPC itself waits for 30 s after an answer, and up to two
// minutes after there was none: a server that comes back at another address would not be found for that long.
const lookUpAgain = 2 * time.Second

// names looks names up as gRPC does, but again soon after something went wrong.
type names struct {
	resolver.Builder
}

// lookUp is the one that names of servers are looked up by.
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
	go l.run(ctx, first, look)
	return l, nil
}

// lookups make one resolver after the other, each for one look.
type lookups struct {
	// again and answered hold something if another look is wanted, and if the last one has come to something.
	again, answered chan struct{}
	cancel          context.CancelFunc
	ended           chan struct{}
}

func (l *lookups) run(ctx context.Context, current resolver.Resolver, look func() (resolver.Resolver, error)) {
	defer close(l.ended)
	for received(ctx, l.answered) && backoff.Sleep(ctx, lookUpAgain) && received(ctx, l.again) {
		current.Close()
		var err error
		if current, err = look(); err != nil {
			return // The target was one before.
		}
	}
	current.Close()
}

// received waits for something from c.
func received(ctx context.Context, c <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c:
		return true
	}
}

// put leaves something in c, unless there is something.
func put(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// ResolveNow implements [resolver.Resolver].
func (l *lookups) ResolveNow(resolver.ResolveNowOptions) { put(l.again) }

// Close implements [resolver.Resolver].
func (l *lookups) Close() {
	l.cancel()
	<-l.ended
}

// listener hears what a look comes to.
type listener struct {
	resolver.ClientConn
	lookups *lookups
}

// UpdateState implements [resolver.ClientConn].
func (l listener) UpdateState(state resolver.State) error {
	defer put(l.lookups.answered)
	err := l.ClientConn.UpdateState(state)
	if err != nil {
		put(l.lookups.again)
	}
	return err
}

// ReportError implements [resolver.ClientConn].
func (l listener) ReportError(err error) {
	defer put(l.lookups.answered)
	put(l.lookups.again)
	l.ClientConn.ReportError(err)
}
