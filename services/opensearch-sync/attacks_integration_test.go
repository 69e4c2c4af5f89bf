//go:build integration

package opensearchsync_test

import (
	"bufio"
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/kinds"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

// delete deletes an object of alice's. By force she also removes its finalizers.
func (a unprivilegedUser) delete(kind kinds.Kind, name string, force bool) {
	a.T.Helper()
	api := a.objects.Resource(kind.GroupVersionResource()).Namespace(namespace)
	if err := api.Delete(a.T.Context(), name, metav1.DeleteOptions{}); err != nil {
		a.T.Fatal(err)
	}
	if force { // Without a finalizer the object is gone already.
		_, _ = api.Patch(a.T.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}
}

// Alice deletes her user while the service is stopped, before or after what belongs to it. Her login must not outlive
// the user.
func TestDeletionInAnyOrderRevokesLogin(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	users, clusters := kinds.OpenSearchUsers(), kinds.OpenSearchClusters()
	b.connect()
	a := b.alice()
	secret := func(name string) {
		if err := b.core.CoreV1().Secrets(namespace).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	renamed := specWithOwnSecret()
	renamed["name"] = "other"
	running := b.serveWith(shortenWaits)
	for _, order := range []struct {
		name   string
		delete func(user string)
	}{
		{"by-force", func(user string) { a.delete(users, user, true) }},
		{"after-its-secret", func(user string) {
			secret("mine")
			a.delete(users, user, false)
		}},
		{"after-its-cluster", func(user string) {
			b.remove(clusters, cluster)
			a.delete(users, user, false)
		}},
		{"after-its-cluster-by-force", func(user string) {
			b.remove(clusters, cluster)
			a.delete(users, user, true)
			b.AwaitGone(users.InNamespace(namespace), user)
			b.connect()
		}},
		{"before-its-cluster-is-replaced", func(user string) {
			a.delete(users, user, false)
			b.remove(clusters, cluster)
			b.connect()
		}},
		{"and-creates-it-with-another-name", func(user string) {
			a.delete(users, user, true)
			b.AwaitGone(users.InNamespace(namespace), user)
			a.accepted(a.create(users, user, renamed))
		}},
	} {
		b.secret("mine", map[string]string{"p": second})
		b.connect()
		a.accepted(a.create(users, order.name, specWithOwnSecret()))
		b.login(order.name, second, http.StatusOK)
		b.state(users, order.name, "CREATED", "")
		running.Stop()
		order.delete(order.name)
		running = b.serveWith(shortenWaits)
		b.login(order.name, second, http.StatusUnauthorized)
		b.absent("internalusers/" + order.name)
	}
	b.login("other", second, http.StatusOK)
	a.delete(users, "and-creates-it-with-another-name", false)
	b.absent("internalusers/other")
}

// OpenSearch compares the names of all users with the entries of all mappings at each login.
func TestPatternCostIsBoundedForLogins(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serveWith(shortenWaits)
	a := b.alice()
	b.role("watchers")
	b.write("internalusers/administrator-of-logs", map[string]any{"password": first})
	slow := map[string]any{"roles": []any{"watchers"}, "users": []any{"/(((([a-z-]*)*)*)*)*!/"}}
	a.accepted(a.create(kinds.OpenSearchBindings(), "slow", slow))
	b.state(kinds.OpenSearchBindings(), "slow", "ERROR", "comparing it can take too long")
	b.login("administrator-of-logs", first, http.StatusOK)
	b.remove(kinds.OpenSearchBindings(), "slow")
	b.remove(kinds.OpenSearchRoles(), "watchers")
}

// OpenSearch lists a kind as a whole. If one object could make the list too long to be read, nobody's login would end.
func TestObjectSizeIsBoundedBelowListLimit(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serveWith(shortenWaits)
	a := b.alice()
	b.user("anna")
	b.login("anna", first, http.StatusOK)
	for name, text := range map[string]string{"commas": strings.Repeat(",", 1_200_000), "letters": strings.Repeat("a", 1_200_000)} {
		large := specWithOwnSecret()
		large["attributes"] = map[string]any{"text": text}
		a.accepted(a.create(kinds.OpenSearchUsers(), name, large))
		b.state(kinds.OpenSearchUsers(), name, "ERROR", "split it into several objects")
	}
	b.remove(kinds.OpenSearchUsers(), "anna", "commas", "letters")
	b.login("anna", first, http.StatusUnauthorized)
}

// Four tenants connect clusters to servers of their own, which list as much as a list may have, and slowly. The pod of the
// service has 512 MiB.
func TestServersOfTenantsLeaveMemoryAndWorkersForOthers(t *testing.T) {
	const hostile = 4
	b := newTestEnv(t)
	b.Reflector()
	var lists atomic.Int64
	var over atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" || r.Method != http.MethodGet {
			fmt.Fprint(w, `{"cluster_uuid":"tenant"}`)
			return
		}
		out := bufio.NewWriter(w)
		fmt.Fprint(out, `{"last":{}`)
		for i := range 33_000 { // A run holds two of these lists.
			if _, err := fmt.Fprintf(out, `,"%x":{"attributes":{"a":"*"}}`, i); err != nil {
				return
			}
			if i%4000 == 0 {
				<-time.After(200 * time.Millisecond)
			}
			if over.Load() { // The service need not wait for the rest before it stops.
				return
			}
		}
		fmt.Fprint(out, `}`)
		_ = out.Flush()
		lists.Add(1)
	}))
	t.Cleanup(server.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for i := range hostile {
		name := fmt.Sprint("tenant-", i)
		b.declare(name, map[string]string{"url": server.URL, "username": "a", "password": "b", "ca.crt": authority})
		for kind, fields := range map[kinds.Kind]map[string]any{
			kinds.OpenSearchUsers():        {"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}},
			kinds.OpenSearchRoles():        {"clusterPermissions": []any{"cluster:monitor/main"}},
			kinds.OpenSearchBindings():     {"roles": []any{"r"}, "users": []any{"anna"}},
			kinds.OpenSearchTenants():      {"description": "red"},
			kinds.OpenSearchActionGroups(): {"allowedActions": []any{"cluster:monitor/main"}},
		} {
			fields["opensearchCluster"] = map[string]any{"name": name}
			b.put(kind, name, spec(fields))
		}
	}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.connect()
	b.serveWith(func(c *opensearchsync.Config) {
		shortenWaits(c)
		c.DriftInterval = time.Second
	})
	slowest, peak := time.Duration(0), b.highestHeap(before.HeapInuse)
	for began, rounds := time.Now(), 0; (rounds < 3 || lists.Load() < 8) && time.Since(began) < soon/2; rounds++ {
		edited := time.Now()
		b.user("anna")
		b.login("anna", first, http.StatusOK)
		b.remove(kinds.OpenSearchUsers(), "anna")
		b.login("anna", first, http.StatusUnauthorized)
		slowest = max(slowest, time.Since(edited))
	}
	highest := peak() >> 20
	over.Store(true)
	t.Logf("%d lists, %d MiB in use at most, a user comes and goes within %v", lists.Load(), highest, slowest)
	if lists.Load() < 4 || highest > 350 || slowest > soon/2 {
		t.Errorf("got %d lists, %d MiB and %v; want at least 4, at most 350 MiB and %v", lists.Load(), highest, slowest, soon/2)
	}
}

// highestHeap measures the heap in use above a base until the returned function is called, which returns the highest value.
func (b *testEnv) highestHeap(base uint64) (end func() uint64) {
	ctx, cancel := context.WithCancel(b.T.Context())
	highest := make(chan uint64)
	go func() {
		var now runtime.MemStats
		peak := uint64(0)
		for ctx.Err() == nil {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse-min(base, now.HeapInuse))
			<-time.After(20 * time.Millisecond)
		}
		highest <- peak
	}()
	return func() uint64 { cancel(); return <-highest }
}
