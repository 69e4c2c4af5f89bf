package informer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	replicaStream = "REPLICA"
	replicaPrefix = "replica."
	subjectPrefix = "entail."
)

// laggingStream is a bus whose consumers of changes are on a replica that is behind the stream's leader.
type laggingStream struct{ jetstream.JetStream }

func (b *testStreams) lagging() laggingStream {
	b.t.Helper()
	_, err := b.js.CreateStream(b.t.Context(), jetstream.StreamConfig{
		Name: replicaStream, Subjects: []string{replicaPrefix + ">"},
		SubjectTransform: &jetstream.SubjectTransformConfig{Source: replicaPrefix + ">", Destination: subjectPrefix + ">"},
	})
	b.must(err)
	return laggingStream{b.js}
}

func (l laggingStream) OrderedConsumer(ctx context.Context, stream string, cfg jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	if stream == topology.Changes {
		stream = replicaStream
	}
	return l.JetStream.OrderedConsumer(ctx, stream, cfg)
}

// reaches makes the replica catch up with the leader, up to a sequence.
func (b *testStreams) reaches(sequence uint64) {
	b.t.Helper()
	leader, err := b.js.Stream(b.t.Context(), topology.Changes)
	b.must(err)
	replica, err := b.js.Stream(b.t.Context(), replicaStream)
	b.must(err)
	for at := replica.CachedInfo().State.LastSeq + 1; at <= sequence; at++ {
		copied := nats.NewMsg(replicaPrefix + "overwritten")
		msg, err := leader.GetMsg(b.t.Context(), at)
		if err == nil {
			copied.Subject, copied.Data, copied.Header = replicaPrefix+strings.TrimPrefix(msg.Subject, subjectPrefix), msg.Data, msg.Header
		} else if !errors.Is(err, jetstream.ErrMsgNotFound) {
			b.t.Fatal(err)
		}
		_, err = b.js.PublishMsg(b.t.Context(), copied)
		b.must(err)
	}
}

// A replica's last sequence does not show that the informer has read everything. Only the leader knows the end of the
// stream.
func TestInformerLoadsUpToEndOfStreamLeader(t *testing.T) {
	b := newTestStreams(t)
	large := func(c *event.Change) { c.Omitted, c.Object = true, nil }
	marked := b.put(change("a", 1), change("b", 2, large))
	b.mark(kinds.Stores(), 2, marked)
	last := b.put(change("c", 3, large))
	js := b.lagging()
	b.reaches(marked)
	reading, read := make(chan struct{}), make(chan struct{})
	f := b.feed(func(c *informer.Config) {
		c.JS = js
		c.FetchLargeObject = func(ctx context.Context, k event.Key) ([]byte, error) {
			select {
			case reading <- struct{}{}:
			case <-read:
			}
			if k.Name == "b" {
				return []byte(`{}`), nil
			}
			return []byte(`{}`), wait(ctx, read)
		}
	})
	<-reading // The replica has no more messages.
	b.reaches(last)
	<-reading // The informer has read all messages before this one.
	if err := f.IncompleteErr(); !errors.Is(err, informer.ErrIncomplete) {
		t.Errorf("it lacks what the leader has, and says %v", err)
	}
	close(read)
	f.eventually(t, func() error {
		stream, err := b.js.Stream(t.Context(), topology.Changes)
		b.must(err)
		b.reaches(stream.CachedInfo().State.LastSeq)
		return f.complete()
	})
	if got := names(f.stores.All()); got != "a b c " {
		t.Errorf("held are %s", got)
	}
}
