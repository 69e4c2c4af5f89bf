//go:build integration

package tuplesync_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func keyOf(kind kinds.Kind, name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: kind.GroupResource, Name: name}
}

var errCut = fault.Unavailable(errors.New("the line is cut"))

func TestACrashAtAnyPointLeaksNothing(t *testing.T) {
	for name, c := range map[string]struct {
		// cut tells whether the line is cut from this call on.
		cut func(op string, statuses int) bool
		// reached tells that the service has come that far.
		reached func(b *bed, id string) error
	}{
		"between record and tuples": {
			cut:     func(op string, _ int) bool { return op == "Write" },
			reached: func(b *bed, _ string) error { return b.recorded("one", 2) },
		},
		"between tuples and record": {
			cut: func(op string, statuses int) bool { return strings.HasPrefix(op, "PATCH") && statuses > 1 },
			reached: func(b *bed, id string) error {
				if len(b.holds(id)) < 3 {
					return errors.New("the tuples are not there yet")
				}
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, r, id := crashing(t, c.cut)
			b.module("one", "demo", first, second)
			testenv.Eventually(t, soon, func() error { return c.reached(b, id) })
			r.Stop()
			b.module("one", "demo", second) // While the service is down.
			b.mend()
			b.serve(short)
			b.await(models, "one", "Synced")
			b.awaitTuples(id, second, foreign)
			b.Delete(models, "one")
			b.AwaitGone(models, "one")
			b.awaitTuples(id, foreign)
		})
	}
}

// crashing is a demo whose service loses both servers at some call.
func crashing(t *testing.T, cut func(op string, statuses int) bool) (*bed, *testenv.Running, string) {
	t.Helper()
	b := newBed(t)
	b.store("demo")
	id := b.synced("demo", docs)
	b.write(id, []string{foreign}, nil)
	b.Reflector()
	r := b.serve(short)
	b.await(stores, "demo", "Synced")
	b.Settled()
	var down atomic.Bool
	var statuses atomic.Int32
	fail := func(_ context.Context, op string) error {
		if strings.HasSuffix(op, "/one/status") {
			statuses.Add(1)
		}
		if down.Load() || cut(op, int(statuses.Load())) {
			down.Store(true)
			return errCut
		}
		return nil
	}
	b.OpenFGA.FailBefore(fail)
	b.Kube.FailBefore(fail)
	return b, r, id
}

// mend ends all troubles.
func (b *bed) mend() {
	b.OpenFGA.FailBefore(nil)
	b.OpenFGA.FailAfter(nil)
	b.Kube.FailBefore(nil)
	b.Kube.FailAfter(nil)
}

// recorded wants a module's record to have n tuples.
func (b *bed) recorded(name string, n int) error {
	f, err := b.get(models, name)
	if err == nil && len(f.Status.ManagedTuples) != n {
		err = errors.New("not recorded yet")
	}
	return err
}

func TestAConflictIsTriedAgainAtOnce(t *testing.T) {
	b, id := demo(t)
	b.await(stores, "demo", "Synced")
	edited := false
	b.Kube.FailBefore(func(_ context.Context, op string) error {
		if strings.HasSuffix(op, "/one/status") && !edited {
			edited = true
			b.module("one", "demo", second) // The service acts on what is old now.
		}
		return nil
	})
	b.module("one", "demo", first)
	b.await(models, "one", "Synced")
	b.awaitTuples(id, second, foreign)
	stream, err := b.JS.Stream(t.Context(), topology.Changes)
	if err != nil {
		t.Fatal(err)
	}
	durable, err := stream.Consumer(t.Context(), topology.TupleSync)
	if err != nil {
		t.Fatal(err)
	}
	if n := durable.CachedInfo().NumRedelivered; !edited || n != 0 {
		t.Errorf("edited: %v; %d messages had to come again", edited, n)
	}
}

func TestAnOutageOfOpenFGALosesNothing(t *testing.T) {
	b, id := demo(t, first)
	b.await(stores, "demo", "Synced")
	b.OpenFGA.Stop()
	b.store("demo", second)
	b.module("one", "demo", first, second)
	testenv.Eventually(t, soon, func() error { return b.recorded("one", 2) })
	b.OpenFGA.Start(t)
	b.await(stores, "demo", "Synced")
	b.await(models, "one", "Synced")
	b.awaitTuples(id, first, second, foreign)
}
