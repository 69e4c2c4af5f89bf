package reflector

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/topology"
)

// value returns the value of a counter.
func value(t *testing.T, counter prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := counter.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// awaitRewindReport waits until Rewinds reports that a kind is rewound, with the remedy.
func awaitRewindReport(t *testing.T, cfg Config) {
	t.Helper()
	eventually(t, func() error {
		err := cfg.Rewinds.Err()
		if err == nil || !errors.Is(err, errRewound) || !strings.Contains(err.Error(), "delete the stream") {
			return fmt.Errorf("rewinds are %w", err)
		}
		return nil
	})
}

// enters waits until the stream is complete in an epoch, and no kind is rewound any more.
func (b *testNATS) enters(c *fakeSource, cfg Config, epoch string) {
	b.t.Helper()
	eventually(b.t, func() error {
		m, err := b.marker()
		if err != nil || m.GetEpoch() != epoch || m.GetStream() == "" {
			return fmt.Errorf("marker is %v, %w", m, err)
		}
		return errors.Join(b.equal(c), cfg.Rewinds.Err())
	})
}

func TestRestoredClusterIsPublishedInNewEpoch(t *testing.T) {
	for name, tc := range map[string]struct{ interrupted, down bool }{
		"under a watch that goes on":   {},
		"after an interrupted watch":   {interrupted: true},
		"while no watcher was running": {down: true},
	} {
		t.Run(name, func(t *testing.T) {
			b, c := newTestNATS(t), newFakeSource()
			for _, object := range []string{"same", "changed", "deleted"} {
				c.apply(object, "v1", "")
			}
			restore := c.backup()
			cfg := b.config(c)
			stop := b.run(cfg)
			b.becomes(c)
			c.apply("changed", "v2", "")
			c.apply("same", "v1", "a status that nobody reads")
			c.remove("deleted")
			c.apply("made", "v1", "")
			made := c.uid("made")
			b.becomes(c)
			if tc.down {
				b.hasBarrier(c)
				stop()
			}
			restore()
			if tc.interrupted {
				c.interrupt()
			}
			if tc.down {
				b.run(cfg)
			}
			awaitRewindReport(t, cfg)
			b.enters(c, cfg, "epoch/1")
			if last, err := b.p.LastChange(t.Context(), c.key("made")); err != nil || !last.Deleted || last.UID != made || last.Epoch != "epoch/1" {
				t.Errorf("what the restored cluster does not have is %+v, %v", last.Entry, err)
			}
			for object, spec := range map[string]string{"changed": "v2", "deleted": "v1"} {
				got := b.tombstones(object)
				if len(got) != 1 || got[0].UID != c.uid(object) || got[0].Epoch != "epoch" || !strings.Contains(string(got[0].Change.Object), spec) {
					t.Errorf("of %s before the restoration there is %+v", object, got)
				}
			}
			if got := value(t, cfg.Metrics.epochs); got != 1 {
				t.Errorf("%v epochs counted", got)
			}
			c.apply("same", "v3", "")
			c.remove("changed")
			b.becomes(c)
		})
	}
}

func TestSecondRestoreBeginsAnotherEpoch(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	restore := c.backup()
	cfg := b.config(c)
	b.run(cfg)
	for turn := range 2 {
		c.apply("a", "v2", "")
		b.becomes(c)
		restore()
		b.enters(c, cfg, fmt.Sprint("epoch/", turn+1))
	}
}

func TestEpochSurvivesRestart(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	restore := c.backup()
	cfg := b.config(c)
	stop := b.run(cfg)
	c.apply("a", "v2", "")
	b.becomes(c)
	restore()
	b.enters(c, cfg, "epoch/1")
	stop()
	before := b.quiet()
	b.run(cfg)
	b.enters(c, cfg, "epoch/1")
	if got := b.quiet(); got != before {
		t.Errorf("%d messages at a restart", got-before)
	}
}

func TestMarkersAreWithdrawnDuringEpochChange(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	restore := c.backup()
	cfg := b.config(c)
	b.run(cfg)
	c.apply("a", "v2", "")
	b.becomes(c)
	markers := make(chan *nats.Msg, 10)
	if _, err := b.js.Conn().ChanSubscribe(topology.MarkerSubject("local", kinds.Stores().GroupResource), markers); err != nil {
		t.Fatal(err)
	}
	restore()
	b.enters(c, cfg, "epoch/1")
	for _, complete := range []bool{false, true} {
		var m eventv1.SnapshotMarker
		if err := proto.Unmarshal((<-markers).Data, &m); err != nil {
			t.Fatal(err)
		}
		if m.GetEpoch() != "epoch/1" || (m.GetStream() != "") != complete {
			t.Errorf("marker is %v, want it complete: %v", &m, complete)
		}
	}
}

func TestBriefVersionLagDoesNotBeginEpoch(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v1", "")
	restore := c.backup()
	cfg := b.config(c)
	cfg.CheckInterval = 50 * time.Millisecond
	b.run(cfg)
	c.apply("a", "v2", "")
	b.becomes(c)
	before, catchUp := b.quiet(), c.backup()
	restore()
	awaitRewindReport(t, cfg)
	catchUp()
	b.enters(c, cfg, "epoch")
	if got := b.quiet(); got != before {
		t.Errorf("%d messages published", got-before)
	}
}

func TestSweepCorrectsFutureVersion(t *testing.T) {
	for name, later := range map[string]func(c *fakeSource){
		"of an object that is deleted": func(c *fakeSource) { c.remove("a") },
		"of an object that changes":    func(c *fakeSource) { c.apply("a", "v2", "") },
		"of an object that rests":      func(*fakeSource) {},
	} {
		t.Run(name, func(t *testing.T) {
			b, c := newTestNATS(t), newFakeSource()
			c.apply("a", "v1", "")
			cfg := b.config(c)
			b.run(cfg)
			b.becomes(c)
			forged := event.Change{Key: c.key("a"), UID: c.uid("a"), ResourceVersion: "999999999", Epoch: "epoch", Object: []byte(`{"spec":"mine"}`)}
			if _, err := publish.New(b.js).PublishChange(t.Context(), forged, 0, publish.PublicationOptions{}); err != nil {
				t.Fatal(err)
			}
			later(c)
			b.corrects(cfg, causeVersion, 1)
			b.enters(c, cfg, "epoch")
		})
	}
}
