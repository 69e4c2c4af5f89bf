package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

var errEarly = errors.New("a task ended before it was stopped")

// taskGroup holds tasks that run together until stopTasks is called. The end of the context with which they were
// started does not stop them.
type taskGroup struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	errs []error
}

// startTasks starts tasks. It calls alarm when a task ends before stopTasks is called.
func startTasks(ctx context.Context, alarm func(error), each ...func(context.Context) error) *taskGroup {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := &taskGroup{cancel: cancel, done: make(chan struct{})}
	var group sync.WaitGroup
	for _, task := range each {
		group.Go(func() {
			err := task(ctx)
			switch stopped := ctx.Err() != nil; {
			case stopped && (err == nil || errors.Is(err, context.Canceled)):
				return
			case err == nil:
				err = errEarly
			}
			t.mu.Lock()
			t.errs = append(t.errs, err)
			t.mu.Unlock()
			alarm(err)
		})
	}
	go func() {
		group.Wait()
		close(t.done)
	}()
	return t
}

// stopTasks stops the tasks, waits for them, and returns their errors.
func (t *taskGroup) stopTasks(timeout time.Duration) error {
	if t == nil {
		return nil
	}
	t.cancel()
	var late error
	select {
	case <-t.done:
	case <-time.After(timeout):
		late = fmt.Errorf("tasks did not finish within %s", timeout)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(append(t.errs, late)...)
}
