package informer

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

type testValue struct {
	Tag string `json:"tag"`
}

func newTestListers() (*Informer, *Lister[testValue]) {
	v := New(Config{Log: slog.New(slog.DiscardHandler)})
	return v, RegisterLister(v, kinds.Stores(), map[string]func(*testValue) []string{"all": func(*testValue) []string { return []string{"x"} }})
}

func name() event.Key {
	return event.Key{Cluster: "c", GroupResource: kinds.Stores().GroupResource, Name: "n"}
}

// parse reads "a@5" as the state of object a at version 5, "-a@5" as its deletion, and "a@5/1" as its state in the
// second epoch.
func parse(t *testing.T, text string) event.Change {
	t.Helper()
	c := event.Change{Key: name(), Epoch: "e", ObservedAt: time.Now()}
	text, c.Deleted = strings.CutPrefix(text, "-")
	if at, second := strings.CutSuffix(text, "/1"); second {
		text, c.Epoch = at, event.NextEpoch("e")
	}
	c.UID, c.ResourceVersion, _ = strings.Cut(text, "@")
	c.Object = fmt.Appendf(nil, `{"tag":%q}`, text)
	return c
}

func held(table *Lister[testValue]) string {
	o, live := table.GetOrTombstone(name())
	text := "none:"
	if live {
		text = o.Value.Tag + ":"
	}
	for _, gone := range table.TombstonesByIndex("all", "x") {
		text += " " + gone.Value.Tag
	}
	return text
}

func applied(t *testing.T, v *Informer, states ...string) {
	t.Helper()
	for _, state := range states {
		if err := v.Apply(t.Context(), parse(t, state)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTombstonesKeepEveryObjectOfName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ states, want string }{
		{"a@1 b@3", "b@3: a@1"},
		{"a@1 -a@2 b@3", "b@3: a@2"},
		{"-a@2 b@3", "b@3: a@2"},
		{"b@3 -a@2", "b@3: a@2"},
		{"a@1 b@3 -a@1", "b@3: a@1"},
		{"a@1 -a@2 b@3 -b@4 c@5", "c@5: a@2 b@4"},
		{"a@1 b@3 c@5 -c@6", "none: a@1 b@3 c@6"},
		{"a@4 b@7 -a@2", "b@7: a@4"},
		{"a@1 -a@2 a@1", "none: a@2"},
		{"a@1 b@3 -b@4 a@1", "none: a@1 b@4"},
		{"a@1 -a@2 a@3", "a@3:"},
		// The cluster's history was rewound.
		{"a@9 a@5/1", "a@5: a@9"},
		{"a@9 -a@9 a@5/1", "a@5: a@9"},
		{"a@5/1 -a@9", "a@5: a@9"},
		{"a@5/1 a@9", "a@5:"},
		{"a@9 -a@5/1", "none: a@5"},
		{"a@9 a@5/1 -a@6/1", "none: a@6"},
		{"a@9 b@5/1", "b@5: a@9"},
	} {
		t.Run(c.states, func(t *testing.T) {
			t.Parallel()
			v, table := newTestListers()
			applied(t, v, strings.Fields(c.states)...)
			if got := held(table); got != c.want {
				t.Errorf("holds %q, want %q", got, c.want)
			}
		})
	}
}

func TestApplyAuthoritativeDropsContradictedState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ states, lie, is, later, want string }{
		{"a@1 a@900", "a@900", "a@2", "", "a@2:"},
		{"a@1 a@900", "a@900", "a@2", "a@3", "a@3:"},
		{"a@2", "a@2", "a@2", "a@3", "a@3:"},
		{"a@1 b@900", "b@900", "a@2", "", "a@2:"},
		{"a@1 -a@900", "-a@900", "a@2", "a@3", "a@3:"},
		{"a@1 -b@900", "a@1", "a@2", "a@3", "a@3:"},
		{"a@1 b@900", "b@900", "a@1", "", "a@1:"},
		{"a@1 b@900 -b@901", "-b@901", "a@2", "a@3", "a@3:"},
		{"-b@900", "", "a@2", "", "a@2:"},
		{"", "a@2", "a@2", "", "a@2:"},
		// A newer state has arrived since.
		{"a@1 -a@3 b@4 -b@5", "a@1", "a@2", "", "none: a@3 b@5"},
		{"a@1 a@900 a@901", "a@900", "a@2", "", "a@901:"},
		{"a@1 a@900 -a@901", "a@900", "a@2", "", "none: a@901"},
		// The contradicted state was real: the cluster's history was rewound.
		{"a@9", "a@9", "a@5", "a@5/1", "a@5: a@9"},
		{"a@9", "a@9", "a@5", "b@6/1", "b@6: a@9"},
	} {
		t.Run(c.states+" but "+c.is+" then "+c.later, func(t *testing.T) {
			t.Parallel()
			v, table := newTestListers()
			applied(t, v, strings.Fields(c.states)...)
			var lie event.Change
			if c.lie != "" {
				lie = parse(t, c.lie)
			}
			if err := v.ApplyAuthoritative(t.Context(), lie, parse(t, c.is)); err != nil {
				t.Fatal(err)
			}
			applied(t, v, strings.Fields(c.later)...)
			if got := held(table); got != c.want {
				t.Errorf("holds %q, want %q", got, c.want)
			}
		})
	}
}

func TestReloadKeepsStatesBeforeRewind(t *testing.T) {
	t.Parallel()
	v, table := newTestListers()
	applied(t, v, "a@9")
	if err := v.ApplyAuthoritative(t.Context(), parse(t, "a@9"), parse(t, "a@5")); err != nil {
		t.Fatal(err)
	}
	for _, loaded := range []string{"a@5", "a@6/1"} {
		v.beginLoad()
		applied(t, v, loaded)
		table.finishLoad()
	}
	if got := held(table); got != "a@6: a@9" {
		t.Errorf("holds %q", got)
	}
}

func TestReloadKeepsTombstones(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, loaded, want string }{
		{"a@1 -a@2 b@3", "b@3", "b@3: a@2"},
		{"a@1 -a@2", "", "none: a@2"},
		{"a@1", "b@3", "b@3: a@1"},
		{"a@4", "a@3", "a@4:"},
		{"a@3 -a@4", "a@3", "none: a@4"},
		{"a@1", "", "none:"},
		{"a@9", "a@5/1", "a@5: a@9"},
		{"-a@9", "a@5/1", "a@5: a@9"},
		// The loaded content is right, even if it begins with the first epoch again.
		{"a@5/1", "a@5", "a@5: a@5"},
		{"-a@5/1", "a@5", "a@5: a@5"},
	} {
		t.Run(c.before+" then "+c.loaded, func(t *testing.T) {
			t.Parallel()
			v, table := newTestListers()
			applied(t, v, strings.Fields(c.before)...)
			v.beginLoad()
			applied(t, v, strings.Fields(c.loaded)...)
			table.finishLoad()
			if got := held(table); got != c.want {
				t.Errorf("holds %q, want %q", got, c.want)
			}
		})
	}
}

func TestTombstonesAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	v, table := newTestListers()
	applied(t, v, "-b@4", "-a@2", "-c@11", "d@12")
	got := ""
	for _, o := range table.Tombstones(name()) {
		got += o.UID
	}
	if got != "cba" {
		t.Errorf("gone are %q", got)
	}
}

func TestWithCurrentEpochUsesNewestEpoch(t *testing.T) {
	t.Parallel()
	v, table := newTestListers()
	applied(t, v, "a@5/1")
	if err := v.Apply(t.Context(), v.WithCurrentEpoch(parse(t, "a@6"))); err != nil {
		t.Fatal(err)
	}
	if got := held(table); got != "a@6:" {
		t.Errorf("holds %q", got)
	}
}

// silentJetStream is a bus that answers no request.
type silentJetStream struct{ jetstream.JetStream }

func (silentJetStream) Stream(ctx context.Context, _ string) (jetstream.Stream, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestTombstonesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, table := newTestListers()
		v.cfg.JS = silentJetStream{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = v.Run(ctx) }()
		short, usual := parse(t, "-a@2"), parse(t, "-b@4")
		short.ExpiresAt = time.Now().Add(time.Hour)
		for _, c := range []event.Change{short, usual} {
			if err := v.Apply(ctx, c); err != nil {
				t.Fatal(err)
			}
		}
		applied(t, v, "c@9")
		<-time.After(time.Hour - time.Second)
		if got := held(table); got != "c@9: a@2 b@4" {
			t.Errorf("before its time: %q", got)
		}
		<-time.After(2 * expireInterval)
		if got := held(table); got != "c@9: b@4" {
			t.Errorf("after the time of one: %q", got)
		}
		<-time.After(topology.TombstoneTTL)
		if got := held(table); got != "c@9:" || len(v.Keys()) != 1 {
			t.Errorf("after a week: %q, keys %v", got, v.Keys())
		}
	})
}

// A user may create and delete an object any number of times. The cost of the next change must not grow with the
// number of deleted objects with the name.
func TestTombstoneCostIsIndependentOfCount(t *testing.T) {
	v, table := newTestListers()
	n := 0
	cost := func() (bytes uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 50 {
			n++
			applied(t, v, fmt.Sprintf("u%d@%d", n, 2*n), fmt.Sprintf("-u%d@%d", n, 2*n+1))
			if o, live := table.GetOrTombstone(name()); live || o.UID != fmt.Sprint("u", n) {
				t.Fatalf("known last is %s, which lives: %v", o.UID, live)
			}
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := cost(), uint64(0)
	for range 40 {
		many = cost()
	}
	if many > 3*few {
		t.Errorf("for fifty more it takes %d bytes, and took %d while few had the name", many, few)
	}
	if gone := table.Tombstones(name()); len(gone) != n || gone[0].UID != fmt.Sprint("u", n) || gone[n-1].UID != "u1" {
		t.Errorf("known are %d of %d, from %s on", len(gone), n, gone[0].UID)
	}
}
