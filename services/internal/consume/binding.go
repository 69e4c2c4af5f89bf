package consume

import (
	"errors"
	"sync/atomic"
)

// Binding tells whether an engine is bound to its durable: the active replica's, and those that
// stand by. The zero value is not. A connection that is lost is told of elsewhere.
type Binding struct{ bound atomic.Bool }

var errUnbound = errors.New("not bound to the durable")

// Err is nil while the engine is bound.
func (b *Binding) Err() error {
	if b.bound.Load() {
		return nil
	}
	return errUnbound
}
