//go:build integration

package opensearchsync_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

// declare declares another cluster object that is connected by a Secret.
func (b *testEnv) declare(name string, values map[string]string) {
	b.T.Helper()
	b.secret("connection-"+name, values)
	b.put(kinds.OpenSearchClusters(), name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"entail.dev/connection-secret": "connection-" + name}}})
}

// declareOther declares a second cluster object for the same server.
func (b *testEnv) declareOther() {
	b.T.Helper()
	user, password := b.search.AdminLogin()
	b.declare("other", map[string]string{"url": b.search.URL(), "ca.crt": string(b.search.CA()), "username": user, "password": password})
}

func (b *testEnv) bindIn(cluster, name, user string) {
	b.T.Helper()
	b.put(kinds.OpenSearchBindings(), name, spec(map[string]any{"opensearchCluster": map[string]any{"name": cluster}, "roles": []any{"shared"}, "users": []any{user}}))
	b.state(kinds.OpenSearchBindings(), name, "CREATED", "")
}

func TestClusterObjectsOfOneServerKeepEachOthersEntries(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.declareOther()
	fake := b.impostor()
	b.declare("fake", map[string]string{
		"url": fake.URL, "ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: fake.Certificate().Raw})), "username": "a", "password": "b",
	})
	b.serveWith(func(c *opensearchsync.Config) { c.DriftInterval = time.Hour })
	b.write("roles/shared", map[string]any{"cluster_permissions": []string{"cluster_monitor"}})
	b.bindIn(cluster, "one", "anna")
	b.bindIn("other", "two", "anna")
	b.bindIn("fake", "three", "anna")
	b.remove(kinds.OpenSearchBindings(), "one")
	if got := b.mapped("shared"); !slices.Equal(got, []string{"anna"}) { // The entry must stay throughout, not only return later.
		t.Errorf("got %q, want the entry of the other binding", got)
	}
	// A server that has the UUID, but neither the address nor the key, keeps no entries alive.
	b.remove(kinds.OpenSearchBindings(), "two")
	b.mappedTo("shared")
	b.remove(kinds.OpenSearchBindings(), "three")
	b.remove(kinds.OpenSearchClusters(), "other")
	b.remove(kinds.OpenSearchClusters(), "fake")
}

// newSharedServerEnv returns a bed with two cluster objects of one server. A binding of each gives role shared.
func newSharedServerEnv(t *testing.T) *testEnv {
	t.Helper()
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.declareOther()
	b.serve()
	b.role("shared")
	b.bindIn(cluster, "one", "anna")
	b.bindIn("other", "two", "ben")
	return b
}

// A run of one cluster object must not write back what the run of another one has removed since its listing.
func TestClusterObjectsOfOneServerSerializeWrites(t *testing.T) {
	b := newSharedServerEnv(t)
	bindings := b.ResourceClient(kinds.OpenSearchBindings()).Namespace(namespace)
	var first atomic.Bool
	b.search.FailBefore(func(ctx context.Context, op string) error {
		if strings.HasPrefix(op, "PATCH rolesmapping") && first.CompareAndSwap(false, true) {
			_ = bindings.Delete(ctx, "two", metav1.DeleteOptions{})
			for range 50 { // A run beside this one would release the binding by then.
				_, err := bindings.Get(ctx, "two", metav1.GetOptions{})
				if apierrors.IsNotFound(err) || !backoff.Sleep(ctx, 100*time.Millisecond) {
					break
				}
			}
		}
		return nil
	})
	b.bindIn(cluster, "three", "kim")
	b.gone(kinds.OpenSearchBindings(), "two")
	b.mappedTo("shared", "anna", "kim")
	b.remove(kinds.OpenSearchBindings(), "one", "three")
	b.remove(kinds.OpenSearchRoles(), "shared")
}

func TestMappingWithoutItsRoleGoesWithBindingsOfTwoClusterObjects(t *testing.T) {
	b := newSharedServerEnv(t)
	b.remove(kinds.OpenSearchRoles(), "shared")
	for _, name := range []string{cluster, "other"} {
		b.Delete(kinds.OpenSearchClusters().InNamespace(namespace), name)
	}
	b.remove(kinds.OpenSearchBindings(), "one", "two")
	b.absent("rolesmapping/shared")
}

// A change without an answer may take effect after the binding of another cluster object was deleted. An entry of this
// binding that returns belongs to another client.
func TestLateChangeOfOneClusterObjectTakesNoEntryOfAnother(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.declareOther()
	b.serveWith(func(c *opensearchsync.Config) { c.Takeover.SettlingTime = 20 * time.Second })
	b.role("shared")
	b.bindIn(cluster, "one", "anna")
	b.bindIn("other", "two", "ben")
	var lost atomic.Bool
	b.search.FailBefore(func(_ context.Context, op string) error {
		if strings.HasPrefix(op, "PATCH rolesmapping") && lost.CompareAndSwap(false, true) {
			return errors.New("the answer is lost")
		}
		return nil
	})
	b.bind("three", "shared", "kim")
	b.state(kinds.OpenSearchBindings(), "three", "PENDING", "got no answer and may still take effect")
	b.remove(kinds.OpenSearchBindings(), "two")
	b.mappedTo("shared", "anna") // A new entry waits until the change has taken effect or expired.

	b.write("rolesmapping/shared", map[string]any{"users": []string{"anna", "kim", "ben"}}) // The change takes effect.
	b.state(kinds.OpenSearchBindings(), "three", "CREATED", "")
	b.remove(kinds.OpenSearchBindings(), "three")
	b.mappedTo("shared", "anna", "ben")
	b.remove(kinds.OpenSearchBindings(), "one")
	b.mappedTo("shared", "ben")
	b.remove(kinds.OpenSearchRoles(), "shared")
}

// Two cluster objects declare a tenant each, with one name. After another client has deleted it, its owner creates it
// again, and the other one writes nothing.
func TestClusterObjectsOfOneServerDoNotRepairAgainstEachOther(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.declareOther()
	b.serveWith(func(c *opensearchsync.Config) { c.DriftInterval = time.Second })
	tenant := func(in, description string) map[string]any {
		return spec(map[string]any{"opensearchCluster": map[string]any{"name": in}, "name": "shared", "description": description})
	}
	b.put(kinds.OpenSearchTenants(), "one", tenant(cluster, "crimson"))
	b.state(kinds.OpenSearchTenants(), "one", "CREATED", "")
	b.put(kinds.OpenSearchTenants(), "two", tenant("other", "azure"))
	b.state(kinds.OpenSearchTenants(), "two", "IGNORED", "")
	var azure atomic.Int64
	b.search.FailBefore(func(_ context.Context, op string) error {
		if strings.HasPrefix(op, "PATCH tenants") && strings.Contains(b.listed("tenants/shared"), "azure") {
			azure.Add(1)
		}
		return nil
	})
	for range 4 {
		if status, answer := b.search.RequestAsAdmin(t, http.MethodDelete, "/_plugins/_security/api/tenants/shared", nil); status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
		testenv.Eventually(t, soon, func() error {
			if is := b.listed("tenants/shared"); !strings.Contains(is, "crimson") {
				return fmt.Errorf("got %s", is)
			}
			return nil
		})
	}
	before := b.search.CallsByOp()
	b.awaitCalls(before, map[string]int{"GET tenants": 6})
	if is := b.listed("tenants/shared"); !strings.Contains(is, "crimson") || azure.Load() > 0 {
		t.Errorf("got %s, and %d repairs of the other's content", is, azure.Load())
	}
	b.search.FailBefore(nil)
	b.remove(kinds.OpenSearchTenants(), "one")
	b.state(kinds.OpenSearchTenants(), "two", "CREATED", "")
	b.remove(kinds.OpenSearchTenants(), "two")
	b.absent("tenants/shared")
}

// Another client changes a mapping between the listing and the write of the service.
func TestEntriesOfOtherClientsSurviveConcurrentWrites(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serveWith(shortenWaits)
	const mapping = "/_plugins/_security/api/rolesmapping/shared"
	b.write("roles/shared", map[string]any{"cluster_permissions": []string{"cluster_monitor"}})
	b.write("rolesmapping/shared", map[string]any{"users": []string{"kim", "lee"}})
	meanwhile := func(patch ...map[string]string) {
		var once atomic.Bool
		b.search.FailBefore(func(_ context.Context, op string) error {
			if strings.HasPrefix(op, "PATCH rolesmapping") && once.CompareAndSwap(false, true) {
				if status, answer := b.search.RequestAsAdmin(t, http.MethodPatch, mapping, patch); status != http.StatusOK {
					t.Errorf("%d %s", status, answer)
				}
			}
			return nil
		})
	}
	adds := func(user string) map[string]string {
		return map[string]string{"op": "add", "path": "/users/-", "value": user}
	}
	meanwhile(adds("max"))
	b.bindIn(cluster, "one", "anna")
	b.mappedTo("shared", "kim", "lee", "max", "anna")
	<-time.After(3 * time.Second) // Until then, a write of an earlier leader could still take effect.
	meanwhile(adds("ned"))
	b.bind("one", "shared", "ben")
	b.mappedTo("shared", "kim", "lee", "max", "ned", "ben")
	meanwhile(map[string]string{"op": "remove", "path": "/users/0"}) // The entry of the binding has another index then.
	b.remove(kinds.OpenSearchBindings(), "one")
	b.mappedTo("shared", "lee", "max", "ned")
}

// impostor starts a server that reports the UUID of the real one and accepts all writes.
func (b *testEnv) impostor() *httptest.Server {
	b.T.Helper()
	_, identity := b.search.RequestAsAdmin(b.T, http.MethodGet, "/", nil)
	var mu sync.Mutex
	mappings := map[string]json.RawMessage{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.URL.Path == "/":
			_, _ = w.Write(identity)
		case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/rolesmapping"):
			var operations []struct {
				Op, Path string
				Value    json.RawMessage
			}
			_ = json.NewDecoder(r.Body).Decode(&operations)
			for _, o := range operations {
				if mappings[strings.TrimPrefix(o.Path, "/")] = o.Value; o.Op == "remove" {
					delete(mappings, strings.TrimPrefix(o.Path, "/"))
				}
			}
			fmt.Fprint(w, `{"status":"OK"}`)
		case strings.HasSuffix(r.URL.Path, "/rolesmapping"):
			_ = json.NewEncoder(w).Encode(maps.Clone(mappings))
		default:
			fmt.Fprint(w, `{"shared":{}}`)
		}
	}))
	b.T.Cleanup(server.Close)
	return server
}
