package reflector

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/topology"
)

// forge publishes the last message about an object again, edited.
func (b *testNATS) forge(key event.Key, edit func(*nats.Msg, *event.Change)) {
	b.t.Helper()
	last, err := b.p.LastChange(b.t.Context(), key)
	if err != nil {
		b.t.Fatal(err)
	}
	b.forgeChange(last.Change, func(m *nats.Msg, c *event.Change) {
		m.Header.Set(publish.HeaderContentHash, last.ContentHash)
		edit(m, c)
	})
}

func (b *testNATS) forgeChange(c event.Change, edit func(*nats.Msg, *event.Change)) {
	b.t.Helper()
	msg := &nats.Msg{Header: nats.Header{}}
	edit(msg, &c)
	data, err := c.Marshal()
	if err != nil {
		b.t.Fatal(err)
	}
	for name, values := range topology.ChangeHeaders(c) {
		if msg.Header.Get(name) == "" {
			msg.Header[name] = values
		}
	}
	msg.Data, msg.Subject = data, topology.ChangeSubject(c.Key)
	if _, err := b.js.PublishMsg(b.t.Context(), msg); err != nil {
		b.t.Fatal(err)
	}
}

// hasBarrier waits for a barrier that names the newest version of the cluster.
func (b *testNATS) hasBarrier(c *fakeSource) {
	b.t.Helper()
	eventually(b.t, func() error {
		last, _, err := b.p.LastBarrier(b.t.Context(), "local")
		version, _ := c.CurrentResourceVersion(b.t.Context(), c.kind())
		if got := last.GetResourceVersions()[c.kind().GroupResource.String()]; err == nil && got != version {
			err = fmt.Errorf("the barrier names version %q, want %s", got, version)
		}
		return err
	})
}

// body replaces the content.
func body(c *event.Change) { c.Object = bytes.Replace(c.Object, []byte("v1"), []byte("forged"), 1) }

// forgedMessages returns forgeries of an object by name, with the cause for which each is corrected.
func forgedMessages() map[string]struct {
	cause string
	edit  func(*nats.Msg, *event.Change)
} {
	return map[string]struct {
		cause string
		edit  func(*nats.Msg, *event.Change)
	}{
		"a later version":                                               {causeVersion, func(_ *nats.Msg, c *event.Change) { body(c); c.ResourceVersion = "99999" }},
		"a later version of the same content":                           {causeVersion, func(_ *nats.Msg, c *event.Change) { c.ResourceVersion = "99999" }},
		"other content at the same version":                             {causeContent, func(_ *nats.Msg, c *event.Change) { body(c) }},
		"another UID":                                                   {causeVersion, func(_ *nats.Msg, c *event.Change) { body(c); c.UID, c.ResourceVersion = "other", "99999" }},
		"an epoch of another cluster":                                   {causeVersion, func(_ *nats.Msg, c *event.Change) { body(c); c.Epoch = "foreign" }},
		"an epoch of another cluster, and nothing else":                 {causeVersion, func(_ *nats.Msg, c *event.Change) { c.Epoch = "foreign" }},
		"an epoch of another cluster, of an object that does not exist": {causeVersion, func(_ *nats.Msg, c *event.Change) { c.Key.Name, c.UID, c.Epoch = "ghost", "ghost", "foreign" }},
		"a deletion": {causeVersion, func(_ *nats.Msg, c *event.Change) { c.Deleted, c.ResourceVersion = true, "99999" }},
		"a header that disagrees": {causeRefused, func(m *nats.Msg, c *event.Change) {
			m.Header.Set(topology.VersionHeader, c.ResourceVersion)
			body(c)
			c.ResourceVersion = "99999"
		}},
		"an object that does not exist": {causeVersion, func(_ *nats.Msg, c *event.Change) { c.Key.Name, c.UID, c.ResourceVersion = "ghost", "ghost", "99999" }},
	}
}

// staysRight fails unless the stream follows an edit, a deletion and a restart.
func (b *testNATS) staysRight(c *fakeSource, stop func()) {
	b.t.Helper()
	b.becomes(c)
	c.apply("a", "v2", "")
	b.becomes(c)
	c.remove("a")
	b.becomes(c)
	stop()
	c.apply("a", "v3", "")
	b.run(b.config(c))
	b.becomes(c)
}

func TestSweepCorrectsForgeryFromBeforeTerm(t *testing.T) {
	for name, test := range forgedMessages() {
		t.Run(name, func(t *testing.T) {
			b, c := newTestNATS(t), newFakeSource()
			c.apply("a", "v1", "")
			c.apply("b", "v1", "")
			stop := b.run(b.forgeryConfig(c))
			b.becomes(c)
			b.hasBarrier(c)
			stop()
			b.forge(c.key("a"), test.edit)
			cfg := b.forgeryConfig(c)
			stop = b.run(cfg)
			eventually(t, func() error {
				if n := testutil.ToFloat64(cfg.Metrics.corrections.WithLabelValues(test.cause)); n != 1 {
					return fmt.Errorf("%v corrections are counted as %s", n, test.cause)
				}
				return nil
			})
			b.staysRight(c, stop)
			if n := testutil.ToFloat64(cfg.Metrics.epochs); n != 0 {
				t.Errorf("%v epochs began", n)
			}
		})
	}
}

func TestSweepOverwritesOlderState(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	c.apply("a", "v0", "")
	stop := b.run(b.config(c))
	b.becomes(c)
	old, err := b.p.LastChange(t.Context(), c.key("a"))
	if err != nil {
		t.Fatal(err)
	}
	c.apply("a", "v1", "")
	b.becomes(c)
	b.hasBarrier(c)
	stop()
	b.forgeChange(old.Change, func(*nats.Msg, *event.Change) {})
	cfg := b.config(c)
	stop = b.run(cfg)
	b.staysRight(c, stop)
	for _, cause := range []string{causeRefused, causeVersion, causeContent} {
		if n := testutil.ToFloat64(cfg.Metrics.corrections.WithLabelValues(cause)); n != 0 {
			t.Errorf("%v corrections are counted as %s", n, cause)
		}
	}
}

// Forged versions must not pass for those of a cluster that was restored from a backup.
func TestSweepCountsAllForgeries(t *testing.T) {
	b, c := newTestNATS(t), newFakeSource()
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		c.apply(name, "v1", "")
	}
	stop := b.run(b.forgeryConfig(c))
	b.becomes(c)
	b.hasBarrier(c)
	stop()
	for _, name := range names {
		b.forge(c.key(name), func(_ *nats.Msg, c *event.Change) { body(c); c.ResourceVersion = "99999" })
	}
	cfg := b.forgeryConfig(c)
	b.run(cfg)
	b.corrects(cfg, causeVersion, 4)
	b.becomes(c)
	if n := testutil.ToFloat64(cfg.Metrics.epochs); n != 0 || cfg.Halt.Reason() == "" {
		t.Errorf("%v epochs began; halted for %q", n, cfg.Halt.Reason())
	}
}
