package topology

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Backlog counts the unsettled messages of a durable consumer.
type Backlog struct {
	// Pending counts messages that were not delivered yet.
	Pending uint64
	// Unsettled counts delivered messages that are not settled, Redelivering those among them that were delivered more
	// than once.
	Unsettled, Redelivering int
}

// ReadBacklog returns the backlog of a service.
func ReadBacklog(ctx context.Context, js jetstream.JetStream, service string) (Backlog, error) {
	durable, err := js.Consumer(ctx, Changes, service)
	if err != nil {
		return Backlog{}, fmt.Errorf("look up durable %s: %w", service, err)
	}
	info := durable.CachedInfo()
	return Backlog{Pending: info.NumPending, Unsettled: info.NumAckPending, Redelivering: info.NumRedelivered}, nil
}
