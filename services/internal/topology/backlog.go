package topology

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Backlog counts the messages that a durable has before it.
type Backlog struct {
	// Pending have not been sent yet.
	Pending uint64
	// Unsettled have been, and Redelivering of them more than once.
	Unsettled, Redelivering int
}

// ReadBacklog asks for that of a service.
func ReadBacklog(ctx context.Context, js jetstream.JetStream, service string) (Backlog, error) {
	durable, err := js.Consumer(ctx, Changes, service)
	if err != nil {
		return Backlog{}, fmt.Errorf("look up durable %s: %w", service, err)
	}
	info := durable.CachedInfo()
	return Backlog{Pending: info.NumPending, Unsettled: info.NumAckPending, Redelivering: info.NumRedelivered}, nil
}
