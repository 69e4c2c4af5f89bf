//go:build integration

package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/webhook"
)

// reviewOf returns a review of a user that gets the project web.
func reviewOf(user string) string { return strings.Replace(review, `"alice"`, `"`+user+`"`, 1) }

// authorizerOf returns an address, and a function that lets each webhook of a bed listen there, also after a restart.
func authorizerOf(t testing.TB) (address string, set func(*webhook.Config)) {
	t.Helper()
	var taken atomic.Pointer[net.Listener]
	listener := testenv.ListenLoopback(t)
	taken.Store(&listener)
	address = listener.Addr().String()
	return address, func(c *webhook.Config) {
		c.Authorizer.Listen = address
		if first := taken.Swap(nil); first != nil {
			c.Authorizer.Listener = *first
		}
	}
}

// asker sends the same question repeatedly, without pauses.
type asker struct {
	address, user string
	// always is the text that every answer must contain.
	always string
	// answers counts the answers, failures the requests without one.
	answers, failures atomic.Int64
}

// run sends questions until ctx ends. An answer with status 200 must be as declared. Everything else must be 503, or a
// failed connection.
func (a *asker) run(ctx context.Context, t *testing.T) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.address+"/core/v1alpha/webhook", strings.NewReader(reviewOf(a.user)))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		response, err := client.Do(r)
		if err != nil {
			a.failures.Add(1)
			continue
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		switch {
		case err != nil || response.StatusCode == http.StatusServiceUnavailable:
			a.failures.Add(1)
		case response.StatusCode != http.StatusOK || !strings.Contains(string(body), a.always):
			t.Errorf("%s: got %d %s", a.user, response.StatusCode, body)
			return
		default:
			a.answers.Add(1)
		}
	}
}

// more waits for an answer to a question that is sent after the call, so it waits for two answers.
func (a *asker) more(t *testing.T) {
	t.Helper()
	before := a.answers.Load()
	testenv.Eventually(t, soon, func() error {
		if n := a.answers.Load() - before; n < 2 {
			return fmt.Errorf("%s: no answer yet", a.user)
		}
		return nil
	})
}

// refused waits until webhook repeatedly returns 503, although it receives barriers of the watcher.
func (a *asker) refused(t *testing.T, b *bed) {
	t.Helper()
	before := a.failures.Load()
	barriers := testenv.NewBarrierWriter(publish.New(b.JS), "local")
	testenv.Eventually(t, soon, func() error {
		if err := barriers.Write(t.Context(), 0); err != nil {
			return err
		}
		if code, answer := subjectRequest(t, a.address); code != http.StatusServiceUnavailable {
			return fmt.Errorf("%d %s", code, answer)
		}
		if n := a.failures.Load() - before; n < 1000 {
			return fmt.Errorf("%s: got status 503 %d times", a.user, n)
		}
		return nil
	})
}

// TestFaultsDoNotCauseAnswer sends questions about alice, who always has a role, and about mallory, who never has.
// Faults of webhook, NATS and OpenFGA must not change any answer.
func TestFaultsDoNotCauseAnswer(t *testing.T) {
	address, set := authorizerOf(t)
	b := newBedWith(t, set)
	reflector := b.StartReflector()
	b.protect()
	web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	b.create(kinds.IAMUsers(), "mallory", map[string]any{"email": "mallory@example.com"})
	b.bind("bound", "Project", "web", web, subjectFromMessage("User", "alice", alice))
	b.awaitReady()
	askers := []*asker{
		{address: address, user: "alice", always: `"allowed":true`},
		{address: address, user: "alice", always: `"allowed":true`},
		{address: address, user: "mallory", always: "missing permission"},
	}
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()
	for _, a := range askers {
		asking.Go(func() { a.run(ctx, t) })
	}
	answered := func() {
		t.Helper()
		for _, a := range askers {
			a.more(t)
		}
	}
	answered()
	for what, strike := range map[string]func(){
		"webhook ends and begins again": func() { b.running.Stop(); b.serve() },
		"the bus is away":               func() { b.NATS.Stop(); b.NATS.Start(t) },
		"the bus is wiped":              reflector.WipeAndReplay,
		"webhook begins while the bus is away": func() {
			b.running.Stop()
			b.NATS.Stop()
			b.serve()
			b.NATS.Start(t)
		},
		"webhook begins while the bus is empty": func() {
			b.running.Stop()
			release := reflector.Pause()
			b.RecreateStreams()
			b.serve()
			askers[0].refused(t, b)
			release()
			reflector.Replay()
		},
		"everything is said again": reflector.Replay,
	} {
		t.Log(what)
		strike()
		answered()
	}
	for _, a := range askers {
		t.Logf("%s: %d answers, %d failures", a.user, a.answers.Load(), a.failures.Load())
	}
}

// TestReplayedOldChangeIsCorrected replays old changes on NATS. Once the watcher has corrected the stream, an
// old binding must allow no access, and an old tombstone must take none.
func TestReplayedOldChangeIsCorrected(t *testing.T) {
	address, set := authorizerOf(t)
	b := newBedWith(t, set)
	b.StartReflector()
	b.protect()
	web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	b.bind("replayed", "Project", "web", web, subjectFromMessage("User", "alice", alice))
	until := func(want string) {
		t.Helper()
		testenv.Eventually(t, soon, func() error {
			if code, answer := subjectRequest(t, address); code != http.StatusOK || !strings.Contains(answer, want) {
				return fmt.Errorf("%d %s", code, answer)
			}
			return nil
		})
	}
	until(`"allowed":true`)
	old := b.LastChange(kinds.PolicyBindings(), namespace, "replayed")
	b.remove(kinds.PolicyBindings(), "replayed")
	until("missing permission")
	tombstone := b.LastChange(kinds.PolicyBindings(), namespace, "replayed")
	b.correct(tombstone, b.again(old))
	b.create(kinds.IAMUsers(), "after-old", map[string]any{"email": "a@example.com"})
	b.awaitReady() // The service now has everything that was written before that user.
	until("missing permission")
	if _, answer := subjectRequest(t, address); strings.Contains(answer, `"allowed":true`) {
		t.Errorf("an old state of a removed binding allows access: %s", answer)
	}
	b.bind("replayed", "Project", "web", web, subjectFromMessage("User", "alice", alice))
	until(`"allowed":true`)
	bound := b.LastChange(kinds.PolicyBindings(), namespace, "replayed")
	b.correct(bound, b.again(tombstone))
	b.create(kinds.IAMUsers(), "after-tombstone", map[string]any{"email": "b@example.com"})
	b.awaitReady()
	if code, answer := subjectRequest(t, address); code != http.StatusOK || !strings.Contains(answer, `"allowed":true`) {
		t.Errorf("the tombstone of an earlier binding removes access: %d %s", code, answer)
	}
}

// correct publishes the state of an object over the message with a sequence, as the watcher does.
func (b *bed) correct(c event.Change, over uint64) {
	b.T.Helper()
	if _, err := publish.New(b.JS).PublishChange(b.T.Context(), c, over, publish.PublicationOptions{Force: true}); err != nil {
		b.T.Fatal(err)
	}
}

// again writes an old change of an object to NATS again, and returns the sequence of the message.
func (b *bed) again(c event.Change) uint64 {
	b.T.Helper()
	data, err := c.Marshal()
	var ack *jetstream.PubAck
	if err == nil {
		ack, err = b.JS.PublishMsg(b.T.Context(), &nats.Msg{Subject: topology.ChangeSubject(c.Key), Header: topology.ChangeHeaders(c), Data: data})
	}
	if err != nil {
		b.T.Fatal(err)
	}
	return ack.Sequence
}
