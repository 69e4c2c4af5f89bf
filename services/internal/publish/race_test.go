package publish

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

// A former leader may notice late that another leader has replaced it. It publishes nothing that is older than the
// stream's content that it has read, but it may have read it long ago. Even then, a reader of the stream must not see
// an older state of an object after a newer one.
func TestConcurrentPublishersNeverPublishOlderState(t *testing.T) {
	const leaders, names, versions = 4, 3, 25
	p := New(bus(t, 0))
	seen := follow(t, p.js)
	var racing sync.WaitGroup
	for leader := range leaders {
		random := rand.New(rand.NewPCG(uint64(leader), 1))
		racing.Go(func() {
			memory := map[string]Entry{}
			for _, i := range random.Perm(names * versions) {
				c := state(fmt.Sprintf("x%d", i%names), 1+i/names)
				c.Deleted = c.ResourceVersion == strconv.Itoa(versions) && i%names == 0
				known, ok := memory[c.Key.Name]
				if ok && !c.IsNewerThan(known.Change()) {
					continue
				}
				ack, err := p.PublishChange(context.WithoutCancel(t.Context()), c, known.Sequence, PublicationOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				if ack.Stale && c.IsNewerThan(ack.Change()) {
					t.Errorf("version %s of %s is told to be older than %s", c.ResourceVersion, c.Key.Name, ack.Version)
				}
				if random.IntN(2) == 0 { // Otherwise it remembers an outdated entry.
					memory[c.Key.Name] = ack.Entry
				}
			}
		})
	}
	racing.Wait()
	for i := range names {
		name := fmt.Sprintf("x%d", i)
		last := mustLast(t, p, name)
		if last.Version != strconv.Itoa(versions) || last.Deleted != (i == 0) {
			t.Errorf("at the end %s is at version %s, deleted %v", name, last.Version, last.Deleted)
		}
		seen.await(t, last)
	}
}

// A forced change may come from an old answer of the API server.
func TestForcedChangeReplacesOnlyExpectedMessage(t *testing.T) {
	p := New(bus(t, 0))
	forged := mustPublish(t, p, state("a", 99999), 0, PublicationOptions{})
	newest := mustPublish(t, p, state("a", 7), forged.Sequence, PublicationOptions{Force: true})
	for name, c := range map[string]event.Change{"an older state": state("a", 6), "a deletion": deletedState("a", 6)} {
		if _, err := p.PublishChange(t.Context(), c, forged.Sequence, PublicationOptions{Force: true}); !errors.Is(err, ErrMessageReplaced) {
			t.Errorf("%s: got %v, want ErrChanged", name, err)
		}
		if last := mustLast(t, p, "a"); last.Sequence != newest.Sequence {
			t.Errorf("%s replaced the newest state by %+v", name, last.Entry)
		}
	}
}

// streamReader is a client that reads the stream all the time.
type streamReader struct {
	mu   sync.Mutex
	last map[string]event.Change
	news chan struct{}
}

func follow(t *testing.T, js jetstream.JetStream) *streamReader {
	t.Helper()
	consumer, err := js.OrderedConsumer(t.Context(), topology.Changes, jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	r := &streamReader{last: map[string]event.Change{}, news: make(chan struct{}, 1)}
	reading, err := consumer.Consume(func(msg jetstream.Msg) {
		c, err := topology.DecodeChange(msg)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if before, ok := r.last[c.Key.Name]; ok && !c.IsNewerThan(before) {
			t.Errorf("%s goes from version %s to %s", c.Key.Name, before.ResourceVersion, c.ResourceVersion)
		}
		r.last[c.Key.Name] = c
		select {
		case r.news <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reading.Stop(); <-reading.Closed() })
	return r
}

// await waits until the reader has read a message.
func (r *streamReader) await(t *testing.T, last StoredMessage) {
	t.Helper()
	for {
		r.mu.Lock()
		got := r.last[last.Key.Name]
		r.mu.Unlock()
		if got.ResourceVersion == last.Version && got.Deleted == last.Deleted {
			return
		}
		select {
		case <-r.news:
		case <-t.Context().Done():
			t.Fatalf("read was %s of %s at last, want %s", got.ResourceVersion, got.Key.Name, last.Version)
		}
	}
}
