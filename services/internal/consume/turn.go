package consume

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/topology"
)

// pinHeader tells a replica that it is the active one; it changes with every turn.
const pinHeader = "Nats-Pin-Id"

// turn is that of a replica as the active one. The server gives it, by a pin, to one replica at
// a time; how sure a replica may be that it still has its turn is decided here alone.
type turn struct {
	mu  sync.Mutex
	pin string
}

// begins takes the pin of a message, and reports whether a new turn begins with it.
func (t *turn) begins(msg jetstream.Msg) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	pin := msg.Headers().Get(pinHeader)
	another := pin != t.pin
	t.pin = pin
	return another
}

// end gives up the turn if it is ours, so that another replica need not wait for it to run out.
func (t *turn) end(ctx context.Context, js jetstream.JetStream, service string) error {
	t.mu.Lock()
	pin := t.pin
	t.mu.Unlock()
	durable, err := js.Consumer(ctx, topology.Changes, service)
	if err != nil {
		return fmt.Errorf("look up durable: %w", err)
	}
	for _, g := range durable.CachedInfo().PriorityGroups {
		if pin == "" || g.PinnedClientID != pin {
			continue
		}
		stream, err := js.Stream(ctx, topology.Changes)
		if err != nil {
			return fmt.Errorf("look up stream: %w", err)
		}
		if err := stream.UnpinConsumer(ctx, service, g.Group); err != nil {
			return fmt.Errorf("unpin: %w", err)
		}
	}
	return nil
}
