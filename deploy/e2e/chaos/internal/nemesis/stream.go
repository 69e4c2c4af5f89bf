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

// Names of blows on what is in NATS.
const (
	// DropStreams deletes all streams at once.
	DropStreams = "drop-streams"
	// DropStream deletes one.
	DropStream = "drop-stream"
	// DropDurable deletes the consumer of a service.
	DropDurable = "drop-durable"
	// Limits is somebody who gives a stream other limits.
	Limits = "limits"
	// Full leaves JetStream no room.
	Full = "full"
)

func streams() []Blow {
	return []Blow{
		{Name: DropStreams, Weight: 1, Nodes: 1, Replicas: 1, draw: drawDropStreams},
		{Name: DropStream, Weight: 2, Nodes: 1, Replicas: 1, draw: drawDropStream},
		{Name: DropDurable, Weight: 2, Nodes: 1, Replicas: 1, draw: drawDropDurable},
		{Name: Limits, Weight: 1, Nodes: 1, Replicas: 1, draw: drawLimits},
		{Name: Full, Weight: 1, Nodes: 1, Replicas: 1, draw: drawFull},
	}
}

// callFor bounds a request to NATS, which another blow may have taken away.
const callFor = 10 * time.Second

// asked is a strike that asks something of NATS. That NATS is away, or that there is nothing to
// strike, is no failure.
func asked(text string, ask func(ctx context.Context, js jetstream.JetStream) error) Strike {
	return Strike{Text: text, Do: func(ctx context.Context, t *Target) (func() error, error) {
		ctx, cancel := context.WithTimeout(ctx, callFor)
		defer cancel()
		_ = ask(ctx, t.Bus.JS)
		return nil, nil
	}}
}

func drawDropStreams(*rand.Rand, Shape) Strike {
	return asked("all", func(ctx context.Context, js jetstream.JetStream) error {
		var errs []error
		for _, name := range checker.Streams() {
			errs = append(errs, js.DeleteStream(ctx, name))
		}
		return errors.Join(errs...)
	})
}

func drawDropStream(r *rand.Rand, _ Shape) Strike {
	name := checker.Streams()[r.IntN(len(checker.Streams()))]
	return asked(name, func(ctx context.Context, js jetstream.JetStream) error { return js.DeleteStream(ctx, name) })
}

func drawDropDurable(r *rand.Rand, _ Shape) Strike {
	var durables []string
	for _, s := range system.Services() {
		if s.Durable != "" {
			durables = append(durables, s.Durable)
		}
	}
	name := durables[r.IntN(len(durables))]
	return asked(name, func(ctx context.Context, js jetstream.JetStream) error { return js.DeleteConsumer(ctx, changes, name) })
}

const changes = "ENTAIL_CHANGES"

func drawLimits(r *rand.Rand, _ Shape) Strike {
	name := checker.Streams()[r.IntN(len(checker.Streams()))]
	return asked(name+" takes one message", func(ctx context.Context, js jetstream.JetStream) error {
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

// drawFull: a stream of somebody else takes all the room there is.
func drawFull(r *rand.Rand, s Shape) Strike {
	d := between(r, 2*time.Second, 10*time.Second)
	return Strike{
		Text: fmt.Sprintf("for %s", d), For: d,
		Do: func(ctx context.Context, t *Target) (func() error, error) {
			ctx, cancel := context.WithTimeout(ctx, callFor)
			defer cancel()
			_ = fill(ctx, t.Bus.JS, s.Nodes)
			return func() error { return empty(t.Bus.JS) }, nil
		},
	}
}

// fill publishes until JetStream takes no more.
func fill(ctx context.Context, js jetstream.JetStream, copies int) error {
	_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: filler, Subjects: []string{"filler"}, Replicas: copies})
	if err != nil {
		return err
	}
	for range system.Room/(512<<10) + 1 {
		if _, err := js.Publish(ctx, "filler", make([]byte, 512<<10)); err != nil {
			return err // It is full.
		}
	}
	return nil
}

// empty takes the filler away, for as long as it takes.
func empty(js jetstream.JetStream) error {
	ctx, cancel := context.WithTimeout(unbroken(), time.Minute)
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
