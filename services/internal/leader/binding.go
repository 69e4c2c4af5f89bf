package leader

import (
	"errors"
	"sync/atomic"
)

// ConsumerBinding reports whether a replica is bound to the durable consumer, and so takes part in the election. The
// leader and the standby replicas are all bound. The zero value is not bound. It does not cover the connection to
// NATS.
type ConsumerBinding struct{ bound atomic.Bool }

var errUnbound = errors.New("not bound to the durable")

// Set records whether the replica is bound.
func (b *ConsumerBinding) Set(bound bool) { b.bound.Store(bound) }

// Err returns nil while the replica is bound.
func (b *ConsumerBinding) Err() error {
	if b.bound.Load() {
		return nil
	}
	return errUnbound
}
