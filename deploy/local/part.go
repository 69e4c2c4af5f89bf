package main

import (
	"context"
	"fmt"
	"time"
)

// stopTimeout is how long each of the controllers, the API server and etcd
// may take to stop.
const stopTimeout = 1500 * time.Millisecond

// part is a component that runs beside the others until it is stopped.
type part struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// start runs a component. Its context is its own: parts are stopped one by
// one, in the order that they need each other, and not by a signal.
func start(name string, run func(context.Context) error) *part {
	ctx, cancel := context.WithCancel(context.Background())
	p := &part{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer cancel()
		p.err = run(ctx)
	}()
	return p
}

// failure says why a part ended that nobody had stopped.
func (p *part) failure() error {
	if p.err == nil {
		return fmt.Errorf("the %s stopped by itself", p.name)
	}
	return fmt.Errorf("running the %s: %w", p.name, p.err)
}

// stop ends the part, or gives up on it: what it still has in flight is then
// cut off by the end of the process.
func (p *part) stop() {
	p.cancel()
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
	}
}
