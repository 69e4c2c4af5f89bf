package publish

import (
	"errors"
	"testing"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestPublisherWritesBarrierOnlyAfterExpectedBarrier(t *testing.T) {
	p := New(bus(t, 0))
	if b, _, err := p.LastBarrier(t.Context(), "local"); !errors.Is(err, ErrNoMessage) {
		t.Errorf("got %v, %v without a barrier, want ErrNone", b, err)
	}
	expected := uint64(0)
	for number := range uint64(2) {
		sequence, err := p.PublishBarrier(t.Context(), &eventv1.Barrier{Cluster: "local", Run: "run", Number: number + 1}, expected)
		if err != nil {
			t.Fatal(err)
		}
		if b, last, err := p.LastBarrier(t.Context(), "local"); err != nil || b.GetNumber() != number+1 || last != sequence {
			t.Errorf("got %v at %d, %v; want number %d at %d", b, last, err, number+1, sequence)
		}
		if _, err := p.PublishBarrier(t.Context(), &eventv1.Barrier{Cluster: "local"}, expected); !errors.Is(err, ErrUnexpectedBarrier) {
			t.Errorf("got %v for a barrier that expects %d, want ErrRefused", err, expected)
		}
		expected = sequence
	}
	if _, err := p.js.Publish(t.Context(), topology.BarrierSubject("local"), []byte("not protobuf")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.LastBarrier(t.Context(), "local"); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %v for another message, want ErrMalformed", err)
	}
}

func TestBarrierDoesNotCoverMessageOfEarlierConnection(t *testing.T) {
	p := New(bus(t, 0))
	p.js.Conn().Reconnects = 1
	for name, c := range map[string]struct {
		connections []uint64
		unproven    bool
	}{
		"no message":                           {nil, false},
		"a message over this connection":       {[]uint64{1}, false},
		"a message over an earlier connection": {[]uint64{0}, true},
		"messages over both":                   {[]uint64{1, 0}, true},
	} {
		p.ResetLostMessages()
		for _, connection := range c.connections {
			p.recordMessageWithoutBarrier(connection)
		}
		_, last, err := p.LastBarrier(t.Context(), "local")
		if err != nil && !errors.Is(err, ErrNoMessage) {
			t.Fatal(err)
		}
		if _, err := p.PublishBarrier(t.Context(), &eventv1.Barrier{Cluster: "local"}, last); (err != nil) != c.unproven {
			t.Errorf("%s: a barrier returns %v", name, err)
		}
		if got := p.MayHaveLostMessages(); got != c.unproven {
			t.Errorf("%s: got %v, want %v", name, got, c.unproven)
		}
	}
}
