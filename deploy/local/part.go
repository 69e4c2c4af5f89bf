package main

import (
	"context"
	"fmt"
	"time"
)

// stopTimeout is how long each of the controllers, the API server and etcd
// may take to stop.
const stopTimeout = 1500 * time.Millisecond

// component is a component that runs beside the others until it is stopped.
type component struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// startComponent runs a component. Its context is its own: parts are stopped one by
// one, in the order that they need each other, and not by a signal.
func startComponent(name string, run func(context.Context) error) *component {
	ctx, cancel := context.WithCancel(context.Background())
	p := &component{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer cancel()
		p.err = run(ctx)
	}()
	return p
}

// failureErr says why a part ended that nobody had stopped.
func (p *component) failureErr() error {
	if p.err == nil {
		return fmt.Errorf("the %s stopped by itself", p.name)
	}
	return fmt.Errorf("running the %s: %w", p.name, p.err)
}

// stop ends the part, or gives up on it: what it still has in flight is then
// cut off by the end of the process.
func (p *component) stop() {
	p.cancel()
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
	}
}
