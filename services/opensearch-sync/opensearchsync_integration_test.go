//go:build integration

package opensearchsync_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

func TestUsersRolesAndBindingsAreSynced(t *testing.T) {
	b := newTestEnv(t)
	reflector := b.Reflector()
	b.serve()
	b.user("anna")
	b.state(kinds.OpenSearchUsers(), "anna", "PENDING", "to exist") // GitOps applies objects in any order.
	b.connect()
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	b.login("anna", first, http.StatusOK)
	b.user("ben")
	b.bind("one", "watchers", "anna", "ben")
	b.state(kinds.OpenSearchBindings(), "one", "PENDING", "not in OpenSearch yet")
	b.role("watchers")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
	b.bind("two", "watchers", "anna")
	b.state(kinds.OpenSearchBindings(), "two", "CREATED", "")
	b.login("ben", first, http.StatusOK) // Without the line break.
	if status, answer := b.search.RequestAs(t, "anna", first, http.MethodGet, "/_cluster/health", nil); status != http.StatusOK {
		t.Errorf("anna may not what her role says: %d %s", status, answer)
	}

	b.AwaitNoCalls()
	before := b.search.Writes()
	b.CheckNoWrites("a replay", reflector.Replay)
	if now := b.search.Writes(); now != before {
		t.Errorf("a replay writes %d times to OpenSearch", now-before)
	}

	b.secret("passwords", map[string]string{"anna": second, "ben": first})
	b.login("anna", second, http.StatusOK)
	b.login("anna", first, http.StatusUnauthorized)

	b.remove(kinds.OpenSearchBindings(), "one")
	if got := b.mapped("watchers"); !slices.Equal(got, []string{"anna"}) {
		t.Errorf("of two bindings one is left, and the mapping has %v", got)
	}
	b.remove(kinds.OpenSearchBindings(), "two")
	b.remove(kinds.OpenSearchRoles(), "watchers")
	b.remove(kinds.OpenSearchUsers(), "anna")
	b.remove(kinds.OpenSearchUsers(), "ben")
	if got := b.mapped("watchers"); got != nil {
		t.Errorf("a mapping is left: %v", got)
	}
	b.login("anna", second, http.StatusUnauthorized)
}

func TestForeignEntitiesAreKept(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.write("internalusers/anna", map[string]any{"password": second, "backend_roles": []string{"theirs"}})
	b.write("roles/theirs", map[string]any{"cluster_permissions": []string{"cluster_all"}})
	b.write("rolesmapping/theirs", map[string]any{"users": []string{"kim", "anna"}, "hosts": []string{"h"}, "description": "by hand", "and_backend_roles": []string{"x", "y"}})
	mapping := b.listed("rolesmapping/theirs")
	b.serve()
	b.connect()
	b.user("anna")
	b.role("theirs")
	b.bind("one", "theirs", "anna", "ben")
	b.state(kinds.OpenSearchUsers(), "anna", "ERROR", "from another author")
	b.state(kinds.OpenSearchRoles(), "theirs", "IGNORED", "exists in OpenSearch already")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
	b.login("anna", second, http.StatusOK)
	if got := b.mapped("theirs"); !slices.Equal(got, []string{"kim", "anna", "ben"}) {
		t.Errorf("the mapping has %v", got)
	}
	b.put(kinds.OpenSearchUsers(), "admin", spec(map[string]any{"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}}))
	b.state(kinds.OpenSearchUsers(), "admin", "ERROR", "reserves the user")
	_, before := b.search.RequestAsAdmin(t, http.MethodGet, "/_plugins/_security/api/roles/readall", nil)
	b.put(kinds.OpenSearchRoles(), "static", spec(map[string]any{"name": "readall", "clusterPermissions": []any{"cluster_monitor"}}))
	b.state(kinds.OpenSearchRoles(), "static", "IGNORED", "reserved by OpenSearch")
	b.remove(kinds.OpenSearchRoles(), "static")
	_, after := b.search.RequestAsAdmin(t, http.MethodGet, "/_plugins/_security/api/roles/readall", nil)
	if !bytes.Contains(before, []byte(`"static":true`)) || !bytes.Equal(before, after) {
		t.Errorf("a role of OpenSearch itself was %s, and is %s", before, after)
	}

	b.remove(kinds.OpenSearchBindings(), "one")
	b.remove(kinds.OpenSearchRoles(), "theirs")
	b.remove(kinds.OpenSearchUsers(), "anna")
	b.login("anna", second, http.StatusOK)
	if now := b.listed("rolesmapping/theirs"); now != mapping {
		t.Errorf("after all is deleted, the mapping is %s, and was %s", now, mapping)
	}
	if status, _ := b.search.RequestAsAdmin(t, http.MethodGet, "/_plugins/_security/api/roles/theirs", nil); status != http.StatusOK {
		t.Errorf("the role is gone: %d", status)
	}
}

// A resync of objects in step reads each list once, however many objects there are. Runs over mappings read the roles,
// too, and runs over roles the action groups.
func TestResyncListsEachKindOnce(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serveWith(func(c *opensearchsync.Config) {
		shortenWaits(c)
		c.DriftInterval = time.Hour
	})
	var names []string
	for i := range 10 {
		name := fmt.Sprint("o-", i)
		names = append(names, name)
		b.put(kinds.OpenSearchUsers(), name, spec(map[string]any{"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}}))
		b.role(name)
		b.bind(name, name, name)
	}
	for _, name := range names {
		b.state(kinds.OpenSearchUsers(), name, "CREATED", "")
		b.state(kinds.OpenSearchBindings(), name, "CREATED", "")
	}
	want, now := map[string]int{"GET internalusers": 1, "GET roles": 2, "GET rolesmapping": 1, "GET actiongroups": 1}, map[string]int{}
	for try := 0; try < 3 && !maps.Equal(now, want); try++ { // A new leader resyncs once more by itself.
		b.AwaitCaughtUp(topology.OpensearchSync)
		b.AwaitNoCalls()
		before := b.search.CallsByOp()
		b.RequestResync(topology.OpensearchSync)
		b.awaitCalls(before, want)
		b.AwaitNoCalls()
		now = b.search.CallsByOp()
		for op, n := range before {
			if now[op] -= n; now[op] == 0 {
				delete(now, op)
			}
		}
		delete(now, "GET /") // Each new connection requests the identity of the cluster.
	}
	if !maps.Equal(now, want) {
		t.Errorf("it makes %v, want %v", now, want)
	}
	b.remove(kinds.OpenSearchBindings(), names...)
	b.remove(kinds.OpenSearchRoles(), names...)
	b.remove(kinds.OpenSearchUsers(), names...)
}

// warned waits until a Kubernetes Event about an object has this reason and a message that contains the text.
func (b *testEnv) warned(name, reason, text string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		events, err := b.core.CoreV1().Events(namespace).List(b.T.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == name && e.Reason == reason && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("no Event says %s: %q of %s", reason, text, name)
	})
}

func TestBadObjectDoesNotBlockOthers(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.put(kinds.OpenSearchActionGroups(), "bad", spec(map[string]any{"allowedActions": []any{"read"}, "type": "no-type"}))
	b.put(kinds.OpenSearchActionGroups(), "good", spec(map[string]any{"allowedActions": []any{"read"}}))
	b.put(kinds.OpenSearchTenants(), "room", spec(map[string]any{}))
	b.secret("passwords", map[string]string{"anna": "short", "ben": first})
	b.user("anna")
	b.user("ben")
	b.put(kinds.OpenSearchUsers(), "odd", spec(map[string]any{"passwordFrom": map[string]any{"name": "../passwords", "key": "odd"}}))
	b.connect()
	b.serveWith(shortenWaits)
	b.state(kinds.OpenSearchActionGroups(), "good", "CREATED", "")
	b.state(kinds.OpenSearchActionGroups(), "bad", "ERROR", "OpenSearch answers 400")
	b.state(kinds.OpenSearchTenants(), "room", "CREATED", "")
	b.state(kinds.OpenSearchUsers(), "ben", "CREATED", "")
	b.state(kinds.OpenSearchUsers(), "anna", "ERROR", "OpenSearch answers 400")
	b.warned("anna", "Refused", "OpenSearch answers")
	b.state(kinds.OpenSearchUsers(), "odd", "PENDING", "there is no such Secret")
	b.remove(kinds.OpenSearchUsers(), "odd")
	b.remove(kinds.OpenSearchActionGroups(), "bad")
	b.remove(kinds.OpenSearchClusters(), cluster) // Objects can be deleted without their cluster.
	b.remove(kinds.OpenSearchActionGroups(), "good")
	b.remove(kinds.OpenSearchTenants(), "room")
	b.remove(kinds.OpenSearchUsers(), "anna")
	b.remove(kinds.OpenSearchUsers(), "ben")
}
