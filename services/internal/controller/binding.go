package controller

import (
	"errors"
	"sync/atomic"
)

// Binding reports whether an engine is bound to its durable consumer. Active and standby replicas are. The zero value
// is not bound. The connection to NATS is reported elsewhere.
type Binding struct{ bound atomic.Bool }

var errUnbound = errors.New("not bound to the durable")

// Err returns nil while the engine is bound.
func (b *Binding) Err() error {
	if b.bound.Load() {
		return nil
	}
	return errUnbound
}
