package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestReadAllYieldsEverySubjectOnce(t *testing.T) {
	p := New(bus(t, 0))
	want := map[event.Key]Entry{}
	for i := range 1500 {
		ack := mustPublish(t, p, state(fmt.Sprint("s-", i%1000), i+1), 0, PublicationOptions{ContentHash: fmt.Sprint(i)})
		want[ack.Key] = ack.Entry
	}
	ack := mustPublish(t, p, deletedState("gone", 9), 0, PublicationOptions{ContentHash: "last"})
	want[ack.Key] = ack.Entry
	squatter, err := p.js.Publish(t.Context(), topology.ChangeSubject(key("squatter")), []byte("?"))
	if err != nil {
		t.Fatal(err)
	}
	want[key("squatter")] = Entry{Key: key("squatter"), Sequence: squatter.Sequence}
	other := state("model", 1)
	other.Key.GroupResource = kinds.AuthorizationModels().GroupResource
	mustPublish(t, p, other, 0, PublicationOptions{})
	foreign := state("s-1", 1)
	foreign.Key.Cluster = "other"
	mustPublish(t, p, foreign, 0, PublicationOptions{})
	if _, err := p.js.Publish(t.Context(), "entail.changes.local.core%2Eplatform-mesh%2Eio.stores.no.name.at.all", nil); err != nil {
		t.Fatal(err)
	}

	got := map[event.Key]Entry{}
	for head, err := range p.ReadAll(t.Context(), "local", kinds.Stores().GroupResource, true) {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := got[head.Key]; twice {
			t.Errorf("%s is told twice", head.Key)
		}
		got[head.Key] = head.Entry
		if isRefused := head.Refused != nil; isRefused != (head.Key == key("squatter")) || !isRefused && string(head.Change.Object) == "" {
			t.Errorf("%s: refused %v, object %q", head.Key, head.Refused, head.Change.Object)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d heads, want %d", len(got), len(want))
	}
	for k, head := range want {
		if got[k] != head {
			t.Errorf("head of %s is %+v, want %+v", k, got[k], head)
		}
	}
}

func TestReadAllInNamespaceYieldsOneNamespace(t *testing.T) {
	p := New(bus(t, 0))
	in := func(namespace string) event.Change {
		c := state("x", 7)
		c.Key.Namespace = namespace
		return c
	}
	want := mustPublish(t, p, in("a"), 0, PublicationOptions{}).Entry
	for _, other := range []string{"a.b", "aa", "", "*"} {
		mustPublish(t, p, in(other), 0, PublicationOptions{})
	}
	var got []Entry
	for head, err := range p.ReadAllInNamespace(t.Context(), "local", kinds.Stores().GroupResource, "a", true) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, head.Entry)
	}
	if !slices.Equal(got, []Entry{want}) {
		t.Errorf("heads are %+v, want %+v", got, want)
	}
	for head := range p.ReadAllInNamespace(t.Context(), "local", kinds.Stores().GroupResource, "none", true) {
		t.Errorf("in a namespace with nothing is %+v", head)
	}
}

func TestReadAllOfEmptyStreamEnds(t *testing.T) {
	p := New(bus(t, 0))
	for head, err := range p.ReadAll(t.Context(), "local", kinds.Stores().GroupResource, true) {
		t.Errorf("got %+v, %v", head, err)
	}
}

func TestReadAllEndsWithCaller(t *testing.T) {
	p := New(bus(t, 0))
	for i := range 10 {
		mustPublish(t, p, state(fmt.Sprint(i), 1), 0, PublicationOptions{})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range p.ReadAll(ctx, "local", kinds.Stores().GroupResource, true) {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("error is %v, want that of the context", last)
	}
	for range p.ReadAll(t.Context(), "local", kinds.Stores().GroupResource, true) {
		break
	}
	if info, err := stream(t, p.js).Info(t.Context()); err != nil || info.State.Consumers != 0 {
		t.Errorf("%d consumers are left behind (%v)", info.State.Consumers, err)
	}
}

// Only the leader of the watcher creates a stream again. A read that waits for the stream would keep a leader from
// ending its term.
func TestReadAllEndsWhenStreamIsDeleted(t *testing.T) {
	p := New(bus(t, 0))
	for i := range 1500 { // More than one batch.
		mustPublish(t, p, state(fmt.Sprint(i), 1), 0, PublicationOptions{})
	}
	ended := make(chan error)
	go func() {
		var last error
		deleted := false
		for _, err := range p.ReadAll(t.Context(), "local", kinds.Stores().GroupResource, true) {
			if last = err; !deleted {
				deleted, last = true, p.js.DeleteStream(t.Context(), topology.Changes)
			}
		}
		ended <- last
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("got no error")
		}
	case <-time.After(5 * readStall):
		t.Error("the read still waits for the stream")
	}
}

func TestReadOldestFindsMessageOfResource(t *testing.T) {
	p := New(bus(t, 0))
	stores, models := kinds.Stores().GroupResource, kinds.AuthorizationModels().GroupResource
	if _, err := p.ReadOldestEntry(t.Context(), "local", stores); !errors.Is(err, ErrNoMessage) {
		t.Errorf("error is %v, want ErrNone", err)
	}
	ack := mustPublish(t, p, state("x", 5), 0, PublicationOptions{})
	mustPublish(t, p, state("y", 6), 0, PublicationOptions{})
	if head, err := p.ReadOldestEntry(t.Context(), "local", stores); err != nil || head != ack.Entry {
		t.Errorf("first is %+v, %v; want %+v", head, err, ack.Entry)
	}
	for _, r := range []event.GroupResource{models, {Resource: "stores"}} {
		if _, err := p.ReadOldestEntry(t.Context(), "local", r); !errors.Is(err, ErrNoMessage) {
			t.Errorf("error for %s is %v, want ErrNone", r, err)
		}
	}
}
