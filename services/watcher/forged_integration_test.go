//go:build integration

package watcher_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// forge publishes the last message about a Store again, edited. Headers that edit does not set agree with the fields.
func (b *testEnv) forge(name string, edit func(*nats.Msg, *event.Change)) {
	b.t.Helper()
	last := b.last(name)
	msg, c := &nats.Msg{Subject: topology.ChangeSubject(store(name)), Header: nats.Header{}}, last.Change
	msg.Header.Set(publish.HeaderContentHash, last.ContentHash)
	edit(msg, &c)
	data, err := c.Marshal()
	if err != nil {
		b.t.Fatal(err)
	}
	for header, values := range topology.ChangeHeaders(c) {
		if msg.Header.Get(header) == "" {
			msg.Header[header] = values
		}
	}
	msg.Data = data
	if _, err := b.js.PublishMsg(b.t.Context(), msg); err != nil {
		b.t.Fatal(err)
	}
}

// falsify replaces a text of the object, and gives it a version.
func falsify(c *event.Change, version string) {
	text := strings.NewReplacer("honest", "forged", `"resourceVersion":"`+c.ResourceVersion+`"`, `"resourceVersion":"`+version+`"`)
	c.Object, c.ResourceVersion = []byte(text.Replace(string(c.Object))), version
}

func TestWatcherCorrectsForgedMessages(t *testing.T) {
	forgeries := map[string]func(*nats.Msg, *event.Change){
		"version 99999": func(_ *nats.Msg, c *event.Change) { falsify(c, "99999") },
		"same version":  func(_ *nats.Msg, c *event.Change) { falsify(c, c.ResourceVersion) },
		"header and body disagree": func(m *nats.Msg, c *event.Change) {
			m.Header.Set(topology.VersionHeader, c.ResourceVersion)
			falsify(c, "99999")
		},
	}
	for name, edit := range forgeries {
		for _, before := range []bool{false, true} {
			t.Run(map[bool]string{false: "under a leader: ", true: "before the term: "}[before]+name, func(t *testing.T) {
				b := newTestEnv(t)
				stop := b.run()
				b.apply("demo", "honest")
				b.becomes()
				testenv.Eventually(t, within, func() error { _, _, err := b.p.LastBarrier(t.Context(), "local"); return err })
				if before {
					stop()
				}
				b.forge("demo", edit)
				if before {
					stop = b.run()
				}
				b.isHonest()
				b.apply("demo", "honest edit")
				b.becomes()
				b.remove("demo")
				b.becomes()
				stop()
				b.apply("demo", "honest again")
				b.run()
				b.becomes()
			})
		}
	}
}

// isHonest waits until the stream holds no forged content.
func (b *testEnv) isHonest() {
	b.t.Helper()
	began := time.Now()
	testenv.Eventually(b.t, within, func() error {
		last, err := b.p.LastChange(b.t.Context(), store("demo"))
		if err == nil && (strings.Contains(string(last.Change.Object), "forged") || last.Version == "99999") {
			err = errors.New("the stream holds the forged state")
		}
		return err
	})
	b.t.Logf("corrected after %s", time.Since(began))
	b.becomes()
}

func TestHaltSurvivesRestartUntilResumed(t *testing.T) {
	b := newTestEnv(t)
	stop := b.run()
	b.apply("demo", "honest")
	b.becomes()
	for range 3 {
		b.forge("demo", func(_ *nats.Msg, c *event.Change) { falsify(c, "99999") })
		b.isHonest()
	}
	b.isHalted(true)
	stop()
	if err := b.p.RemoveMessage(t.Context(), b.barrier()); err != nil { // The Lease holds the halt, not NATS.
		t.Fatal(err)
	}
	_, url := b.runOn(b.kube.ServiceConfig(t, topology.Watcher))
	b.isHalted(true)
	client := syncv1connect.NewSyncServiceClient(http.DefaultClient, url)
	if status, err := client.GetStatus(t.Context(), &syncv1.GetStatusRequest{}); err != nil || status.GetHalted() == "" {
		t.Errorf("status is %v, %v; want the reason of the halt", status, err)
	}
	resumed, err := client.Resume(t.Context(), &syncv1.ResumeRequest{})
	if err != nil || !strings.Contains(resumed.GetHalted(), "3 messages were forged") {
		t.Errorf("resumed: %v, %v", resumed, err)
	}
	b.isHalted(false)
	if again, err := client.Resume(t.Context(), &syncv1.ResumeRequest{}); err != nil || again.GetHalted() != "" {
		t.Errorf("resumed again: %v, %v", again, err)
	}
}

// barrier returns the sequence of the last barrier.
func (b *testEnv) barrier() uint64 {
	b.t.Helper()
	_, sequence, err := b.p.LastBarrier(b.t.Context(), "local")
	if err != nil {
		b.t.Fatal(err)
	}
	return sequence
}

// isHalted waits until the barriers halt services and the Lease holds the halt, or until they do not halt services.
func (b *testEnv) isHalted(want bool) {
	b.t.Helper()
	testenv.Eventually(b.t, within, func() error {
		last, _, err := b.p.LastBarrier(b.t.Context(), "local")
		if err == nil && (last.GetHaltDigest() != "") != want {
			err = fmt.Errorf("the barrier is halted for %q", last.GetHalted())
		}
		return err
	})
}
