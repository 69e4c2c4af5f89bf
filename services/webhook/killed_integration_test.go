//go:build integration

package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// TestKilledWebhookDoesNotAllowRevokedUser kills webhook repeatedly under load. A role that was lost meanwhile
// allows no access after the restart, and a kept role always does.
func TestKilledWebhookDoesNotAllowRevokedUser(t *testing.T) {
	const lives = 5
	address := freeAddress(t)
	b := &bed{Env: testenv.NewEnv(t)}
	b.StartReflector()
	b.protect()
	web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	bind := func(name string) {
		uid := b.create(kinds.IAMUsers(), name, map[string]any{"email": name + "@example.com"})
		b.bind(name, "Project", "web", web, subjectFromMessage("User", name, uid))
	}
	bind("alice")
	for life := range lives {
		bind(fmt.Sprint("bob-", life))
	}
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()
	start := func(user, always string) *asker {
		a := &asker{address: address, user: user, always: always}
		asking.Go(func() { a.run(ctx, t) })
		return a
	}
	let := func(user string) {
		t.Helper()
		testenv.Eventually(t, soon, func() error {
			return ask(t.Context(), http.DefaultClient, "http://"+address+"/core/v1alpha/webhook", reviewOf(user), `"allowed":true`)
		})
	}
	live := func() testenv.Process {
		t.Helper()
		return testenv.SpawnService(t, topology.Webhook, b.NATS, b.Kube, "--authorizer-listen", address, "--log-level", "warn")
	}
	var askers []*asker
	answered := func() {
		t.Helper()
		for _, a := range askers {
			a.more(t)
		}
	}
	for life := range lives {
		process := live()
		if life == 0 { // Before this, alice's binding may be missing on NATS.
			let("alice")
			askers = append(askers, start("alice", `"allowed":true`))
		}
		answered()
		bob := fmt.Sprint("bob-", life)
		let(bob)
		process.Kill()
		b.remove(kinds.PolicyBindings(), bob)
		testenv.Eventually(t, soon, func() error {
			if !b.LastChange(kinds.PolicyBindings(), namespace, bob).Deleted {
				return errors.New("the binding is still on NATS")
			}
			return nil
		})
		askers = append(askers, start(bob, "missing permission"))
	}
	live()
	answered()
	for _, a := range askers {
		t.Logf("%s: %d answers, %d failures", a.user, a.answers.Load(), a.failures.Load())
	}
}

// freeAddress returns an address on which no server listens, and that no outgoing connection is given.
func freeAddress(t testing.TB) string {
	t.Helper()
	port, err := devserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return devserver.LoopbackAddress(port)
}
