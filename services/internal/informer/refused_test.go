package informer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/barrier"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestInformerIsIncompleteWhileMessageIsRefused(t *testing.T) {
	b := newTestStreams(t)
	last := b.put(change("a", 1), change("b", 2))
	b.mark(kinds.Stores(), 2, last)
	f := b.feed()
	f.await(t, "a b ")
	b.raw(topology.ChangeSubject(key("b")), "\xff")
	f.refuses(t)
	if _, lives := f.stores.Get(key("b")); !lives {
		t.Error("a refused message deletes its object")
	}
	b.put(change("b", 3))
	f.await(t, "a b ")
}

func TestInformerReloadsAfterRefusedMessageIsRemoved(t *testing.T) {
	b := newTestStreams(t)
	last := b.put(change("a", 1))
	b.mark(kinds.Stores(), 1, last)
	f := b.feed()
	f.await(t, "a ")
	refused, err := b.js.Publish(t.Context(), topology.ChangeSubject(key("b")), []byte("?"))
	b.must(err)
	f.refuses(t)
	b.must(b.RemoveMessage(t.Context(), refused.Sequence))
	f.await(t, "a ")
}

// refuses waits until the informer reports a refused message.
func (f *followingInformer) refuses(t *testing.T) {
	t.Helper()
	f.eventually(t, func() error {
		if err := f.IncompleteErr(); err == nil || !strings.Contains(err.Error(), "was refused") {
			return fmt.Errorf("the view reports %v", err)
		}
		return nil
	})
}

func TestInformerIsIncompleteDuringHalt(t *testing.T) {
	b := newTestStreams(t)
	last := b.put(change("a", 1))
	b.mark(kinds.Stores(), 1, last)
	f := b.feed()
	f.await(t, "a ")
	b.barriers.Halted = "forged"
	f.eventually(t, func() error {
		b.beat(0)
		if err := f.IncompleteErr(); err == nil || !strings.Contains(err.Error(), "all services are halted: forged") {
			return fmt.Errorf("the view reports %v", err)
		}
		return nil
	})
	b.barriers.Halted = ""
	f.eventually(t, func() error { b.beat(0); return f.IncompleteErr() })
}

func TestInformerStaysHaltedUntilBarrierHoldsKey(t *testing.T) {
	b := newTestStreams(t)
	last := b.put(change("a", 1))
	b.mark(kinds.Stores(), 1, last)
	f := b.feed()
	f.await(t, "a ")
	barrierOf := func(o *eventv1.Barrier) {
		t.Helper()
		o.Cluster = "c"
		data, err := proto.Marshal(o)
		b.must(err)
		b.raw(topology.BarrierSubject("c"), string(data))
	}
	barrierOf(&eventv1.Barrier{Halted: "forged", HaltDigest: barrier.HaltDigest("key")})
	f.eventually(t, func() error {
		if err := f.IncompleteErr(); err == nil || !strings.Contains(err.Error(), "all services are halted: forged") {
			return fmt.Errorf("the view reports %v", err)
		}
		return nil
	})
	for name, forged := range map[string]*eventv1.Barrier{
		"a barrier without the halt":    {Run: "forged", Number: 1},
		"the digest in place of a key":  {Run: "forged", Number: 2, ResumeKeys: []string{barrier.HaltDigest("key")}},
		"another halt, and its own key": {Run: "other", Number: 1, Halted: "other", HaltDigest: barrier.HaltDigest("own"), ResumeKeys: []string{"own"}},
	} {
		barrierOf(forged)
		b.beat(0) // The informer loads again, and reads barriers without the halt.
		if err := f.CheckCurrent(t.Context()); err == nil || !errors.Is(err, informer.ErrIncomplete) {
			t.Errorf("%s lifts the halt: %v", name, err)
		}
	}
	f.eventually(t, func() error {
		barrierOf(&eventv1.Barrier{ResumeKeys: []string{"later", "own", "key"}})
		b.beat(0)
		return f.IncompleteErr()
	})
}
