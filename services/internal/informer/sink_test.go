package informer

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/seeds"
)

type targetStatusCall struct{ Says string }

// listerAndForwarder is a forwarder and a lister of the same kind, each in its own informer.
type listerAndForwarder struct {
	sunk, kept *Informer
	sink       *Forwarder[targetStatusCall]
	table      *Lister[targetStatusCall]
	// told holds the states that the forwarder passed on.
	told map[event.Key]string
	// blank counts the objects that are missing in the forwarder.
	blank int
}

func newListerAndForwarder() *listerAndForwarder {
	cfg := Config{Log: slog.New(slog.DiscardHandler), KeepUndecodable: true}
	p := &listerAndForwarder{sunk: New(cfg), kept: New(cfg), told: map[event.Key]string{}}
	p.table = RegisterLister[targetStatusCall](p.kept, kinds.Stores(), nil)
	p.sink = RegisterForwarder(p.sunk, kinds.Stores(), func(c event.Change, value *targetStatusCall) {
		if delete(p.told, c.Key); value != nil {
			p.told[c.Key] = value.Says
		}
	})
	p.sunk.OnReset(func() { clear(p.told) })
	return p
}

func (p *listerAndForwarder) both(f func(*Informer)) { f(p.sunk); f(p.kept) }

// differ returns an error if the forwarder and the lister differ. An object of the lister may be missing in the
// forwarder only if the stream holds another state of the object.
func (p *listerAndForwarder) differ(keys []event.Key, bus simulatedStream) error {
	if a, b := p.sunk.ContentDigest(), p.kept.ContentDigest(); a != b {
		return fmt.Errorf("the digests are %d and %d", a, b)
	}
	for _, of := range []snapshotScope{{kind: kinds.Stores().GroupResource}, {"one", kinds.Stores().GroupResource}} {
		if a, b := p.sink.countInSnapshot(of), p.table.countInSnapshot(of); a != b {
			return fmt.Errorf("there are %d and %d", a, b)
		}
	}
	for _, k := range keys {
		got, live := p.sink.Get(k)
		o, want := p.table.Get(k)
		if live != want || p.sunk.HasLive(k) != want || got.UID != o.UID || got.ResourceVersion != o.ResourceVersion || got.Epoch != o.Epoch {
			return fmt.Errorf("%s is %+v (%v), want %+v (%v)", k, got, live, o.Change, want)
		}
		told, has := p.told[k]
		if on := bus[k]; !has && (o.Value == nil || on.ResourceVersion != o.ResourceVersion || on.Epoch != o.Epoch) {
			if o.Value != nil {
				p.blank++
			}
			continue
		}
		if o.Value == nil || told != o.Value.Says {
			return fmt.Errorf("of %s was told %q, want %+v", k, told, o)
		}
	}
	return nil
}

// simulatedStream holds the newest message of each object. It need not be the newest state.
type simulatedStream map[event.Key]event.Change

func someKeys() (keys []event.Key) {
	for _, n := range []string{"one a", "one b", "two a"} {
		cluster, name, _ := strings.Cut(n, " ")
		keys = append(keys, event.Key{Cluster: cluster, GroupResource: kinds.Stores().GroupResource, Namespace: "n", Name: name})
	}
	return keys
}

// anyChange returns a random change in one of several epochs. If there are several epochs, every deletion is so old
// that a reload does not remember it.
func anyChange(r *rand.Rand, keys []event.Key, epochs int) event.Change {
	uid := r.IntN(2)
	c := event.Change{ // No two objects have the same resourceVersion.
		Key: keys[r.IntN(len(keys))], UID: fmt.Sprint("uid", uid), ResourceVersion: fmt.Sprint(2*r.IntN(9) + uid + 1),
		Epoch: fmt.Sprint("x/", r.IntN(epochs)), Deleted: r.IntN(3) == 0,
	}
	if epochs == 1 {
		c.ObservedAt = time.Now()
	}
	c.Object = fmt.Appendf(nil, `{"says":"%s %s %s"}`, c.UID, c.ResourceVersion, c.Epoch)
	if c.ResourceVersion == "7" || c.ResourceVersion == "12" {
		c.Object = []byte(`{"says":7}`)
	}
	return c
}

// A forwarder must hold the same states as a lister, and must have passed them on. This must be true for any order of
// changes, any number of reloads, and any content of the stream.
func TestForwarderEqualsLister(t *testing.T) {
	t.Parallel()
	keys, objects, blank := someKeys(), 0, 0
	for seed := range seeds.SeedRange(t, 6000) {
		r, p, bus, epochs := rand.New(rand.NewPCG(seed, 0)), newListerAndForwarder(), simulatedStream{}, 1+int(seed%2)
		apply := func(c event.Change) {
			p.both(func(v *Informer) {
				if err := v.Apply(t.Context(), c); err != nil && !fault.IsTerminal(err) {
					t.Fatal(err)
				}
			})
		}
		load := func() {
			p.both((*Informer).beginLoad)
			for range r.IntN(2) { // a load that does not finish
				if c, ok := bus[keys[r.IntN(len(keys))]]; ok {
					apply(c)
				}
				p.both((*Informer).beginLoad)
			}
			for _, k := range keys {
				if c, ok := bus[k]; ok {
					apply(c)
				}
			}
			p.both(func(v *Informer) { v.showLoadedContent() })
		}
		load()
		for range 12 {
			if r.IntN(6) > 0 {
				c := anyChange(r, keys, epochs)
				bus[c.Key] = c
				apply(c)
			} else {
				if r.IntN(2) == 0 { // restored to an earlier state
					c := anyChange(r, keys, epochs)
					bus[c.Key] = c
				}
				delete(bus, keys[r.IntN(len(keys)*2)%len(keys)])
				load()
			}
			if err := p.differ(keys, bus); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			objects += len(p.told)
		}
		blank += p.blank
	}
	if blank == 0 || objects < 10*blank {
		t.Errorf("of %d objects %d were nothing", objects, blank)
	}
}

// A state that was older when it arrived must not be passed on if a newer state was stored while it was decoded.
func TestForwarderDropsStateDecodedTooLate(t *testing.T) {
	t.Parallel()
	p := newListerAndForwarder()
	p.sunk.beginLoad()
	state := func(version string) func() bool {
		t.Helper()
		c := event.Change{Key: someKeys()[0], UID: "u", ResourceVersion: version, Epoch: "x/0", Object: fmt.Appendf(nil, `{"says":%q}`, version)}
		commit, err := p.sink.decodeChange(c, false)
		if err != nil {
			t.Fatal(err)
		}
		return commit
	}
	older, newer := state("1"), state("2")
	if !newer() || older() || p.told[someKeys()[0]] != "2" {
		t.Errorf("told is %v", p.told)
	}
}

// A reload must not forget a deletion. A change of an earlier epoch must not change the object.
func TestForwarderKeepsTombstonesAcrossReload(t *testing.T) {
	t.Parallel()
	p := newListerAndForwarder()
	load := func() { p.both((*Informer).beginLoad); p.both(func(v *Informer) { v.showLoadedContent() }) }
	apply := func(version, epoch string, deleted bool) {
		t.Helper()
		c := event.Change{Key: someKeys()[0], UID: "u", ResourceVersion: version, Epoch: epoch, Deleted: deleted, ObservedAt: time.Now(), Object: []byte(`{"says":"yes"}`)}
		p.both(func(v *Informer) {
			if err := v.Apply(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		})
	}
	load()
	apply("1", "x/1", false)
	apply("3", "x/1", true)
	load()
	apply("2", "x/0", false)
	if err := p.differ(someKeys()[:1], simulatedStream{}); err != nil || len(p.told) > 0 {
		t.Errorf("told is %v, %v", p.told, err)
	}
}

// A user who may write a status can write invalid times, because the API server accepts them.
func TestInformerAcceptsInvalidTimesInStatus(t *testing.T) {
	t.Parallel()
	type dated struct {
		Says   string
		Status struct{ Conditions []metav1.Condition }
	}
	for _, blank := range []bool{true, false} {
		cfg, told := Config{Log: slog.New(slog.DiscardHandler), KeepUndecodable: blank}, ""
		sunk, kept := New(cfg), New(cfg)
		table := RegisterLister[dated](kept, kinds.Stores(), nil)
		RegisterForwarder(sunk, kinds.Stores(), func(_ event.Change, value *dated) { told = value.Says })
		for version, says := range []string{"this", "that"} {
			c := event.Change{Key: someKeys()[0], UID: "u", ResourceVersion: strconv.Itoa(version + 1), Epoch: "x/0", Object: fmt.Appendf(nil,
				`{"says":%q,"status":{"conditions":[{"lastTransitionTime":"2026-01-01t00:00:00z"}]}}`, says)}
			if err := errors.Join(sunk.Apply(t.Context(), c), kept.Apply(t.Context(), c)); err != nil {
				t.Fatal(err)
			}
		}
		if o, _ := table.Get(someKeys()[0]); told != "that" || o.Value.Says != "that" {
			t.Errorf("blank %v: told is %q, kept %+v", blank, told, o.Value)
		}
	}
}

// sequenced sets the position of a change in the stream.
func sequenced(sequence uint64, c event.Change) event.Change {
	c.Sequence = sequence
	return c
}

func TestHigherSequenceWinsWithinOneLoad(t *testing.T) {
	t.Parallel()
	p := newListerAndForwarder()
	k := event.Key{Cluster: "one", GroupResource: kinds.Stores().GroupResource, Name: "a"}
	state := func(version int) event.Change {
		return event.Change{Key: k, UID: "u", Epoch: "e", ResourceVersion: strconv.Itoa(version), Object: []byte(`{}`)}
	}
	deletion := state(2)
	deletion.Deleted = true
	gone := func(c event.Change) event.Change { c.Deleted = true; return c }
	for _, step := range []struct {
		what    string
		change  event.Change
		reload  bool
		version string
	}{
		{what: "a state with a version that no API server wrote", change: sequenced(5, state(99999)), version: "99999"},
		{what: "a state before it", change: sequenced(4, state(100000)), version: "99999"},
		{what: "its correction", change: sequenced(6, state(3)), version: "3"},
		{what: "an older answer of the API server", change: state(2), version: "3"},
		{what: "a newer answer of the API server", change: state(4), version: "4"},
		{what: "the same state in another load, at a lower sequence", change: sequenced(1, state(4)), reload: true, version: "4"},
		{what: "a deletion before it", change: sequenced(0, deletion), version: "4"},
		{what: "a deletion with a version that no API server wrote", change: sequenced(7, gone(state(99999)))},
		{what: "the correction of that deletion", change: sequenced(8, state(5)), version: "5"},
	} {
		p.both(func(v *Informer) {
			if step.reload {
				v.beginLoad()
			}
			if err := v.Apply(t.Context(), step.change); err != nil {
				t.Fatal(err)
			}
			if step.reload {
				v.showLoadedContent()
			}
		})
		kept, _ := p.table.Get(k)
		sunk, _ := p.sink.Get(k)
		if kept.ResourceVersion != step.version || sunk.ResourceVersion != step.version {
			t.Errorf("%s: the table holds %q, the sink %q, want %q", step.what, kept.ResourceVersion, sunk.ResourceVersion, step.version)
		}
	}
}
