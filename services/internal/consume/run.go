package consume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// prefetch bounds the messages on their way to us; each is attached at once, so it may be large.
	prefetch = 512
	// rebind is the wait before the consumer is bound again.
	rebind = 250 * time.Millisecond
	// lease is how often leases are renewed.
	lease = topology.AckWait / 3
	// waitLog is how often waiting for the view is told.
	waitLog = 10 * time.Second
)

func (e *engine[K]) run(ctx context.Context) error {
	defer e.queue.ShutDown()
	if err := e.awaitView(ctx); err != nil {
		return nil // Asked to stop before there was anything to do.
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var helpers, workers sync.WaitGroup
	helpers.Go(func() { e.leases(background, lease) })
	helpers.Go(func() { e.wake(ctx) })
	for range e.cfg.Workers {
		workers.Go(func() { e.work(ctx) })
	}
	for ctx.Err() == nil {
		err := e.receiveAll(ctx)
		if ctx.Err() == nil {
			e.cfg.Log.WarnContext(ctx, "consumer interrupted; binding again", slog.Any("error", err))
			sleep(ctx, rebind)
		}
	}
	e.drain(background, &workers)
	stop()
	helpers.Wait()
	return nil
}

// awaitView holds everything back until the view is complete.
func (e *engine[K]) awaitView(ctx context.Context) error {
	told := time.Now()
	for {
		err := e.cfg.View.Complete()
		if err == nil {
			return nil
		}
		if time.Since(told) > waitLog {
			told = time.Now()
			e.cfg.Log.WarnContext(ctx, "waiting for the view", slog.Any("error", err))
		}
		sleep(ctx, gateDelay/5)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// receiveAll binds to the durable and takes messages until something breaks.
func (e *engine[K]) receiveAll(ctx context.Context) error {
	durable, err := topology.EnsureConsumer(ctx, e.cfg.JS, e.cfg.Service)
	if err != nil {
		return err
	}
	messages, err := durable.Messages(jetstream.PullMaxMessages(prefetch),
		jetstream.PullExpiry(topology.PullExpiry), jetstream.PullPriorityGroup(topology.Group))
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	defer e.handBackRest(messages)
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		e.receive(ctx, msg)
	}
}

// handBackRest returns what was fetched but not taken.
func (e *engine[K]) handBackRest(messages jetstream.MessagesContext) {
	messages.Drain()
	for {
		msg, err := messages.Next()
		if err != nil {
			return
		}
		_ = msg.Nak() // On error the lease runs out.
	}
}

// wake makes the active replica look at everything: at the start from what it knows,
// at every resync thoroughly.
func (e *engine[K]) wake(ctx context.Context) {
	msg := nats.NewMsg(topology.WakeSubject(e.cfg.Service.Name))
	for ctx.Err() == nil {
		if _, err := e.cfg.JS.PublishMsg(ctx, msg); err != nil {
			if !errors.Is(err, context.Canceled) {
				e.cfg.Log.WarnContext(ctx, "wake not published", slog.Any("error", err))
			}
			sleep(ctx, time.Second)
			continue
		}
		msg.Header.Set(topology.ReplayHeader, "resync")
		sleep(ctx, time.Duration(float64(e.cfg.Resync)*(0.9+rand.Float64()/5)))
	}
}

// drain finishes the reconciliations in progress, hands everything else back, and gives
// up the turn so that another replica need not wait for it to run out.
func (e *engine[K]) drain(ctx context.Context, workers *sync.WaitGroup) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Grace)
	defer cancel()
	e.mu.Lock()
	e.draining = true
	e.mu.Unlock()
	e.queue.ShutDown()
	finished := make(chan struct{})
	go func() { workers.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-ctx.Done():
		e.cfg.Log.WarnContext(ctx, "reconciliations still running at the end of the grace period")
	}
	e.mu.Lock()
	open := e.open
	e.open = map[*delivery]struct{}{}
	e.mu.Unlock()
	for d := range open {
		_ = d.msg.Nak() // On error the lease runs out.
	}
	if err := e.unpin(ctx); err != nil {
		e.cfg.Log.DebugContext(ctx, "turn not given up; it will run out", slog.Any("error", err))
	}
}

// unpin gives up the turn if it is ours.
func (e *engine[K]) unpin(ctx context.Context) error {
	durable, err := e.cfg.JS.Consumer(ctx, topology.Changes, e.cfg.Service.Name)
	if err != nil {
		return fmt.Errorf("look up durable: %w", err)
	}
	for _, g := range durable.CachedInfo().PriorityGroups {
		if e.pin == "" || g.PinnedClientID != e.pin {
			continue
		}
		stream, err := e.cfg.JS.Stream(ctx, topology.Changes)
		if err != nil {
			return fmt.Errorf("look up stream: %w", err)
		}
		if err := stream.UnpinConsumer(ctx, e.cfg.Service.Name, g.Group); err != nil {
			return fmt.Errorf("unpin: %w", err)
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
