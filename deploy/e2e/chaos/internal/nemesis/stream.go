package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/checker"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
)

// Names of blows on the data in NATS.
const (
	// DropStreams deletes all streams at once.
	DropStreams = "drop-streams"
	// DropStream deletes one stream.
	DropStream = "drop-stream"
	// DropDurable deletes the consumer of a service.
	DropDurable = "drop-durable"
	// Limits reduces a stream to one message, like a mistaken administrator.
	Limits = "limits"
	// Full fills the storage of JetStream.
	Full = "full"
)

func streamFaults() []Fault {
	return []Fault{
		{Name: DropStreams, Weight: 1, Nodes: 1, Replicas: 1, draw: drawDropStreams},
		{Name: DropStream, Weight: 2, Nodes: 1, Replicas: 1, draw: drawDropStream},
		{Name: DropDurable, Weight: 2, Nodes: 1, Replicas: 1, draw: drawDropDurable},
		{Name: Limits, Weight: 1, Nodes: 1, Replicas: 1, draw: drawLimits},
		{Name: Full, Weight: 1, Nodes: 1, Replicas: 1, draw: drawFull},
	}
}

// callFor bounds a request to NATS, because another blow may have stopped NATS.
const callFor = 10 * time.Second

// requestStrike returns a strike that sends a request to NATS. It is no failure if NATS is away or the target does not exist.
func requestStrike(text string, ask func(ctx context.Context, js jetstream.JetStream) error) FaultInjection {
	return FaultInjection{Text: text, Do: func(ctx context.Context, t *FaultTarget) (func() error, error) {
		ctx, cancel := context.WithTimeout(ctx, callFor)
		defer cancel()
		_ = ask(ctx, t.Bus.JS)
		return nil, nil
	}}
}

func drawDropStreams(*rand.Rand, SystemShape) FaultInjection {
	return requestStrike("all", func(ctx context.Context, js jetstream.JetStream) error {
		var errs []error
		for _, name := range checker.RequiredStreams() {
			errs = append(errs, js.DeleteStream(ctx, name))
		}
		return errors.Join(errs...)
	})
}

func drawDropStream(r *rand.Rand, _ SystemShape) FaultInjection {
	name := checker.RequiredStreams()[r.IntN(len(checker.RequiredStreams()))]
	return requestStrike(name, func(ctx context.Context, js jetstream.JetStream) error { return js.DeleteStream(ctx, name) })
}

func drawDropDurable(r *rand.Rand, _ SystemShape) FaultInjection {
	var durables []string
	for _, s := range system.Services() {
		if s.Durable != "" {
			durables = append(durables, s.Durable)
		}
	}
	name := durables[r.IntN(len(durables))]
	return requestStrike(name, func(ctx context.Context, js jetstream.JetStream) error { return js.DeleteConsumer(ctx, changes, name) })
}

const changes = "ENTAIL_CHANGES"

func drawLimits(r *rand.Rand, _ SystemShape) FaultInjection {
	name := checker.RequiredStreams()[r.IntN(len(checker.RequiredStreams()))]
	return requestStrike(name+" takes one message", func(ctx context.Context, js jetstream.JetStream) error {
		stream, err := js.Stream(ctx, name)
		if err != nil {
			return err
		}
		config := stream.CachedInfo().Config
		config.MaxMsgs = 1
		_, err = js.UpdateStream(ctx, config)
		return err
	})
}

const filler = "FILLER"

// drawFull draws a strike in which a foreign stream takes all storage.
func drawFull(r *rand.Rand, s SystemShape) FaultInjection {
	d := drawDuration(r, 2*time.Second, 10*time.Second)
	return FaultInjection{
		Text: fmt.Sprintf("for %s", d), For: d,
		Do: func(ctx context.Context, t *FaultTarget) (func() error, error) {
			ctx, cancel := context.WithTimeout(ctx, callFor)
			defer cancel()
			_ = fillStorage(ctx, t.Bus.JS, s.Nodes)
			return func() error { return deleteFiller(t.Bus.JS) }, nil
		},
	}
}

// fillStorage publishes until JetStream accepts no more.
func fillStorage(ctx context.Context, js jetstream.JetStream, copies int) error {
	_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: filler, Subjects: []string{"filler"}, Replicas: copies})
	if err != nil {
		return err
	}
	for range system.Room/(512<<10) + 1 {
		if _, err := js.Publish(ctx, "filler", make([]byte, 512<<10)); err != nil {
			return err // The storage is full.
		}
	}
	return nil
}

// deleteFiller deletes the filler. It retries for up to a minute.
func deleteFiller(js jetstream.JetStream) error {
	ctx, cancel := context.WithTimeout(healingContext(), time.Minute)
	defer cancel()
	for {
		attempt, done := context.WithTimeout(ctx, callFor)
		err := js.DeleteStream(attempt, filler)
		done()
		if err == nil || errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("making room in JetStream again: %w", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
