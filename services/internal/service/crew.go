package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

var errEarly = errors.New("a task ended though nothing told it to")

// crew is tasks that are stopped together, at a time of its owner's choosing: it does not
// stop when the context that it was started with ends.
type crew struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	errs []error
}

// start runs tasks. The first that ends before its time tells alarm.
func start(ctx context.Context, alarm func(error), tasks ...func(context.Context) error) *crew {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &crew{cancel: cancel, done: make(chan struct{})}
	var group sync.WaitGroup
	for _, task := range tasks {
		group.Go(func() {
			err := task(ctx)
			switch stopped := ctx.Err() != nil; {
			case stopped && (err == nil || errors.Is(err, context.Canceled)):
				return
			case err == nil:
				err = errEarly
			}
			c.mu.Lock()
			c.errs = append(c.errs, err)
			c.mu.Unlock()
			alarm(err)
		})
	}
	go func() {
		group.Wait()
		close(c.done)
	}()
	return c
}

// stop ends the tasks, waits for them, and tells what went wrong in them.
func (c *crew) stop(timeout time.Duration) error {
	if c == nil {
		return nil
	}
	c.cancel()
	var late error
	select {
	case <-c.done:
	case <-time.After(timeout):
		late = fmt.Errorf("tasks did not finish within %s", timeout)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(append(c.errs, late)...)
}
