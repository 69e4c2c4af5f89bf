package topology

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// ConsumerBacklog counts the unsettled messages of a durable consumer.
type ConsumerBacklog struct {
	// Pending counts the messages that were not delivered yet.
	Pending uint64
	// Unsettled counts the delivered messages that are not settled. Redelivering counts those that were delivered more
	// than once.
	Unsettled, Redelivering int
}

// ReadBacklog returns the backlog of a service.
func ReadBacklog(ctx context.Context, js jetstream.JetStream, service string) (ConsumerBacklog, error) {
	durable, err := js.Consumer(ctx, Changes, service)
	if err != nil {
		return ConsumerBacklog{}, fmt.Errorf("look up durable %s: %w", service, err)
	}
	info := durable.CachedInfo()
	return ConsumerBacklog{Pending: info.NumPending, Unsettled: info.NumAckPending, Redelivering: info.NumRedelivered}, nil
}
