package testenv

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/barrier"
	"github.com/entail-dev/entail/services/internal/publish"
)

// barrierInterval is the time between two barriers. It is shorter than the watcher's interval, so that tests wait
// less.
const barrierInterval = 250 * time.Millisecond

// BarrierWriter writes the barriers of one cluster, for tests without a watcher.
type BarrierWriter struct {
	// Halted is the reason for a halt, for the next barriers. If it is empty, they announce no halt.
	Halted string

	publisher *publish.Publisher
	cluster   string
	writer    *barrier.Sequencer
}

// NewBarrierWriter returns the writer of a cluster's barriers.
func NewBarrierWriter(p *publish.Publisher, cluster string) *BarrierWriter {
	return &BarrierWriter{publisher: p, cluster: cluster}
}

// Write writes one barrier. It begins another run of barriers after a refusal, or if the connection was lost after a
// change. Unlike the watcher, it does not compare the stream with the API server first.
func (b *BarrierWriter) Write(ctx context.Context, behind time.Duration) error {
	next := &eventv1.Barrier{Cluster: b.cluster, Behind: durationpb.New(behind), WrittenAt: timestamppb.Now(), Halted: b.Halted}
	for {
		if b.publisher.MayHaveLostMessages() {
			b.publisher.ResetLostMessages()
			b.writer = nil
		}
		if b.writer == nil {
			newest, sequence, err := b.publisher.LastBarrier(ctx, b.cluster)
			if err != nil && !errors.Is(err, publish.ErrNoMessage) {
				return err
			}
			b.writer = barrier.NewSequencer(0, newest, sequence)
		}
		sequence, err := b.publisher.PublishBarrier(ctx, next, b.writer.StampNext(next))
		if err == nil {
			b.writer.RecordAccepted(sequence)
		}
		if !errors.Is(err, publish.ErrUnexpectedBarrier) {
			return err
		}
		b.writer = nil
	}
}

// WriteBarriers writes the barriers of a cluster until the test ends, for tests without a watcher.
func WriteBarriers(t testing.TB, js jetstream.JetStream, cluster string) {
	t.Helper()
	barriers := NewBarrierWriter(publish.New(js), cluster)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var writing sync.WaitGroup
	writing.Go(func() {
		for ctx.Err() == nil {
			_ = barriers.Write(ctx, 0) // An error is ignored: another barrier follows soon.
			backoff.Sleep(ctx, barrierInterval)
		}
	})
	t.Cleanup(func() { cancel(); writing.Wait() })
}
