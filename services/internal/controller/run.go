package controller

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// maxPrefetch bounds the messages that are requested in advance. Each message is assigned to its keys at once, so the
	// number may be large.
	maxPrefetch = 512
	// rebindInterval is the wait before the consumer is bound again, or a takeover is tried again.
	rebindInterval = 250 * time.Millisecond
	// waitLog is the time between two log messages while the controller waits for the informer.
	waitLog = 10 * time.Second
	// handBackTimeout bounds the return of prefetched messages.
	handBackTimeout = 2 * time.Second
	// resignTimeout bounds the resignation of the leader. If it fails, the lease expires soon anyway.
	resignTimeout = 2 * time.Second
)

func (e *engine[K]) runEngine(ctx context.Context) error {
	defer e.queue.keys.ShutDown()
	if err := e.waitForInformerSync(ctx); err != nil {
		return nil // ctx ended before the informer was complete.
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var helpers, workers sync.WaitGroup
	helpers.Go(func() { e.unsettled.extendAckWaits(background, e.cfg.Log, ackExtensionInterval(e.cfg.Takeover)) })
	helpers.Go(func() { e.elector.Run(background) })
	helpers.Go(func() { e.runResyncLoop(ctx) })
	helpers.Go(func() { e.results.Run(background, func() { e.enqueueAll(false) }) })
	for range e.cfg.Workers {
		workers.Go(func() { e.runWorker(ctx) })
	}
	for ctx.Err() == nil {
		err := e.consumeMessages(ctx)
		if ctx.Err() == nil {
			e.cfg.Log.WarnContext(ctx, "consumer interrupted; binding again", slog.Any("error", err))
			backoff.Sleep(ctx, rebindInterval)
		}
	}
	e.drainAndResign(background, &workers)
	stop()
	helpers.Wait()
	return nil
}

// ackExtensionInterval returns the interval in which the AckWait of open messages is extended.
func ackExtensionInterval(bounds topology.TakeoverBounds) time.Duration { return bounds.AckWait() / 3 }

// waitForInformerSync blocks until the informer is complete.
func (e *engine[K]) waitForInformerSync(ctx context.Context) error {
	logged := time.Now()
	for {
		err := e.cfg.View.IncompleteErr()
		if err == nil {
			return nil
		}
		if time.Since(logged) > waitLog {
			logged = time.Now()
			e.cfg.Log.WarnContext(ctx, "waiting for the informer", slog.Any("error", err))
		}
		if !backoff.Sleep(ctx, termPollInterval/5) {
			return ctx.Err()
		}
	}
}

// consumeMessages binds the durable consumer and receives messages until an error.
func (e *engine[K]) consumeMessages(ctx context.Context) error {
	durable, err := topology.EnsureConsumer(ctx, e.cfg.JS, e.cfg.Service, e.cfg.Takeover)
	if err != nil {
		return err
	}
	messages, err := durable.Messages(jetstream.PullMaxMessages(maxPrefetch),
		jetstream.PullExpiry(e.cfg.Takeover.PullExpiry()), jetstream.PullPriorityGroup(topology.PriorityGroup))
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	defer nakPrefetched(ctx, messages)
	e.cfg.Binding.Set(true)
	defer e.cfg.Binding.Set(false)
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		e.receiveMessage(ctx, msg)
	}
}

// nakPrefetched returns prefetched messages to the server. It has a timeout, because a subscription to a lost server
// ends late.
func nakPrefetched(ctx context.Context, messages jetstream.MessagesContext) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handBackTimeout)
	defer cancel()
	messages.Drain()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return
		}
		_ = msg.Nak() // On error the server delivers the message again after its AckWait.
	}
}

// drainAndResign waits for the running reconciliations, returns all other messages, publishes the results, and resigns
// as leader.
func (e *engine[K]) drainAndResign(ctx context.Context, workers *sync.WaitGroup) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Grace)
	defer cancel()
	e.startDraining()
	e.queue.keys.ShutDown()
	finished := make(chan struct{})
	go func() { workers.Wait(); e.observing.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-ctx.Done():
		e.cfg.Log.WarnContext(ctx, "reconciliations still running at the end of the grace period")
	}
	for _, d := range e.unsettled.openDeliveries() {
		e.unsettled.removeMessage(d)
		_ = d.msg.Nak() // On error the server delivers the message again after its AckWait.
	}
	e.results.Flush() // Only the leader may publish results, so flush before resigning.
	ctx, cancel = context.WithTimeout(ctx, resignTimeout)
	defer cancel()
	if err := e.elector.Resign(ctx); err != nil {
		e.cfg.Log.DebugContext(ctx, "lease not released; it will expire", slog.Any("error", err))
	}
}
