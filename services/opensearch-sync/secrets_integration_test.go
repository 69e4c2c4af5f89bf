//go:build integration

package opensearchsync_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

// often is a short SecretInterval that reveals unnecessary reads of Secrets.
const often = 100 * time.Millisecond

// secretReads returns how often the service has read Secrets.
func (b *testEnv) secretReads() (n int) {
	for _, name := range []string{"passwords", "others", "connection"} {
		n += b.Kube.CallsByOp()["GET /api/v1/namespaces/"+namespace+"/secrets/"+name]
	}
	return n
}

// A Secret that the watcher follows is read only after it has changed.
func TestWatchedSecretIsReadAfterChangeOnly(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	serve := func() *testenv.RunningService {
		return b.serveWith(func(c *opensearchsync.Config) { c.SecretInterval = often })
	}
	running := serve()
	b.user("anna")
	b.login("anna", first, http.StatusOK)
	b.AwaitCaughtUp(topology.OpensearchSync)
	var before int
	testenv.Eventually(t, soon, func() error { // A run before the first event of the Secret schedules another one.
		before = b.secretReads()
		if b.AwaitNoCalls(); b.secretReads() != before {
			return fmt.Errorf("Secrets were read %d times more", b.secretReads()-before)
		}
		return nil
	})
	if before == 0 {
		t.Error("reads of Secrets are not counted")
	}
	b.secret("others", map[string]string{"anna": second}) // No object names this Secret.
	b.AwaitNoCalls()
	if now := b.secretReads(); now != before {
		t.Errorf("a Secret that nobody names has %d read", now-before)
	}
	b.secret("passwords", map[string]string{"anna": second})
	b.login("anna", second, http.StatusOK)
	b.login("anna", first, http.StatusUnauthorized)

	running.Stop()
	b.secret("passwords", map[string]string{"anna": first + "-3"})
	serve()
	b.login("anna", first+"-3", http.StatusOK)
	b.login("anna", second, http.StatusUnauthorized)
	b.put(kinds.OpenSearchUsers(), "anna", spec(map[string]any{"passwordFrom": map[string]any{"name": "others", "key": "anna"}}))
	b.login("anna", second, http.StatusOK)
	b.secret("others", map[string]string{"anna": first})
	b.login("anna", first, http.StatusOK)
	b.login("anna", second, http.StatusUnauthorized)
	b.remove(kinds.OpenSearchUsers(), "anna")
}

func TestUnwatchedSecretIsReadPeriodically(t *testing.T) {
	b := newTestEnv(t)
	b.Env.StartReflector() // Like a watcher without --secret-namespaces.
	b.connect()
	b.serveWith(func(c *opensearchsync.Config) { c.SecretInterval = often })
	b.user("anna")
	b.login("anna", first, http.StatusOK)
	b.secret("passwords", map[string]string{"anna": second})
	b.login("anna", second, http.StatusOK)
	b.login("anna", first, http.StatusUnauthorized)
	b.remove(kinds.OpenSearchUsers(), "anna")
}

// A change of a cluster's Secret opens a new connection and starts runs over all kinds.
func TestConnectionSecretChangeRunsAllKinds(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	b.user("anna")
	b.role("watchers")
	b.bind("one", "watchers", "anna")
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
	b.AwaitCaughtUp(topology.OpensearchSync)
	b.AwaitNoCalls()
	before := b.search.CallsByOp()
	b.secretLabel("connection")
	b.awaitCalls(before, map[string]int{"GET internalusers": 1, "GET roles": 2, "GET rolesmapping": 1})
	b.remove(kinds.OpenSearchBindings(), "one")
	b.remove(kinds.OpenSearchRoles(), "watchers")
	b.remove(kinds.OpenSearchUsers(), "anna")
}

// A login in progress while a password changes enters OpenSearch's cache after the cache was emptied.
func TestAuthCacheIsFlushedAgainAfterPasswordChange(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	b.user("anna")
	b.login("anna", first, http.StatusOK)
	anna, old, now := b.person("anna"), first, second
	for range 6 { // In about every second round a login meets the change.
		ctx, end := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		for range 8 {
			asking.Go(func() {
				for ctx.Err() == nil {
					_ = anna.gets(ctx, http.StatusOK, old, authinfo)
				}
			})
		}
		b.secret("passwords", map[string]string{"anna": now})
		testenv.Eventually(t, soon, func() error { return anna.gets(ctx, http.StatusOK, now, authinfo) })
		b.login("anna", old, http.StatusUnauthorized)
		end()
		asking.Wait()
		old, now = now, old
	}
	b.remove(kinds.OpenSearchUsers(), "anna")
}
