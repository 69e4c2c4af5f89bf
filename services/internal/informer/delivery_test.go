package informer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// delivered is a change as the service's own consumer delivers it.
func delivered(name string, version int, sequence uint64, at time.Time) event.Change {
	return change(name, version, func(c *event.Change) { c.Sequence, c.PublishedAt = sequence, at })
}

// version returns the version of an object that the informer holds.
func (f *followingInformer) version(name string) string {
	o, _ := f.stores.Get(key(name))
	return o.ResourceVersion
}

// A message that waited in the process has a sequence which the restored stream has not reached, or uses for another
// message.
func TestDeliveryFromEarlierLifeIsNotStored(t *testing.T) {
	t.Parallel()
	b := newTestStreams(t)
	b.mark(kinds.Stores(), 1, b.put(change("a", 100)))
	f := b.feed()
	f.await(t, "a ")
	last := b.put(change("a", 150), change("b", 151))
	f.await(t, "a b ")
	for name, test := range map[string]struct {
		c       event.Change
		refused bool
	}{
		"a sequence that the stream has not reached": {delivered("a", 140, last+1000, time.Now().Add(-time.Hour)), true},
		"a sequence of another message":              {delivered("a", 140, last, time.Now().Add(-time.Hour)), false},
		"an object that the stream does not hold":    {delivered("gone", 140, last, time.Now().Add(-time.Hour)), false},
	} {
		if err := f.ApplyDelivery(t.Context(), test.c); (err != nil) != test.refused || err != nil && !fault.IsUnavailable(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if is, gone := f.version("a"), f.version("gone"); is != "150" || gone != "" {
		t.Errorf("got version %s of a and %q of gone, want 150 and none", is, gone)
	}
	if err := f.ApplyDelivery(t.Context(), delivered("c", 200, last+1000, time.Now().Add(time.Hour))); err != nil || f.version("c") != "200" {
		t.Errorf("ahead of the feed: got %v, version %q", err, f.version("c"))
	}
	undecodable := delivered("d", 1, 1, time.Now())
	undecodable.Object = []byte("{")
	if err := f.ApplyDelivery(t.Context(), undecodable); !fault.IsTerminal(err) {
		t.Errorf("undecodable: got %v", err)
	}
	unreadable := delivered("e", 1, 1, time.Now()) // This informer cannot read large objects.
	unreadable.Omitted, unreadable.Object = true, nil
	if err := f.ApplyDelivery(t.Context(), unreadable); !fault.IsTerminal(err) {
		t.Errorf("too large: got %v", err)
	}
}

// The object of a large change is read from the API server. Meanwhile the stream may be restored and loaded again.
func TestDeliveryThatOutlastsLoadIsNotStored(t *testing.T) {
	t.Parallel()
	b := newTestStreams(t)
	b.mark(kinds.Stores(), 1, b.put(change("a", 100)))
	fetching, fetch := make(chan struct{}), make(chan struct{})
	f := b.feed(func(c *informer.Config) {
		c.FetchLargeObject = func(ctx context.Context, _ event.Key) ([]byte, error) {
			close(fetching)
			return []byte(`{}`), wait(ctx, fetch)
		}
	})
	f.await(t, "a ")
	result := make(chan error, 1)
	large := delivered("a", 140, 1_000_000, time.Now().Add(time.Hour))
	large.Omitted, large.Object = true, nil
	go func() { result <- f.ApplyDelivery(t.Context(), large) }()
	<-fetching
	b.replace()
	b.mark(kinds.Stores(), 1, b.put(change("a", 150)))
	f.eventually(t, func() error {
		if f.reloads.Load() == 0 {
			return errors.New("the stream is not loaded again")
		}
		return f.complete()
	})
	close(fetch)
	if err := <-result; err != nil {
		t.Error(err)
	}
	if is := f.version("a"); is != "150" {
		t.Errorf("got version %s, want 150", is)
	}
}
