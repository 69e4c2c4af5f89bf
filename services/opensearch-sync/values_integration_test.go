//go:build integration

package opensearchsync_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	opensearchv1 "github.com/entail-dev/entail/gen/entail/opensearch/v1"
	"github.com/entail-dev/entail/gen/entail/opensearch/v1/opensearchv1connect"
	resources "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

// look starts runs over all kinds of the cluster, and waits until users were listed.
func (b *testEnv) look(n int) {
	b.T.Helper()
	before := b.search.CallsByOp()
	b.annotate(kinds.OpenSearchClusters(), cluster, "look", fmt.Sprint(n))
	b.awaitCalls(before, map[string]int{"GET internalusers": 1})
	b.AwaitNoCalls()
}

// The operator writes right after opensearch-sync, before the change is read back.
func TestUserOverwrittenBeforeReadBackIsKept(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	var wrote, overwrote atomic.Bool
	b.search.FailBefore(func(_ context.Context, op string) error {
		switch {
		case strings.HasPrefix(op, "PUT internalusers"):
			wrote.Store(true)
		case op == "GET internalusers" && wrote.Load() && overwrote.CompareAndSwap(false, true):
			uid := b.get(kinds.OpenSearchUsers(), "anna").GetUID()
			b.write("internalusers/anna", map[string]any{"password": second, "attributes": map[string]any{resources.UIDAttribute: uid, resources.VersionAttribute: "55"}})
		}
		return nil
	})
	b.serveWith(func(c *opensearchsync.Config) { c.DriftInterval = time.Hour })
	b.user("anna")
	for i := range 3 {
		b.state(kinds.OpenSearchUsers(), "anna", "ERROR", "another controller has written the user")
		b.look(i)
	}
	b.login("anna", second, http.StatusOK)
	b.annotate(kinds.OpenSearchUsers(), "anna", resources.AdoptAnnotation, "true")
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	b.login("anna", first, http.StatusOK)
	b.remove(kinds.OpenSearchUsers(), "anna")
}

// One pattern that does not compile keeps OpenSearch from loading every later change of its security configuration.
func TestValuesThatOpenSearchCannotUseAreNotWritten(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	index := func(p map[string]any) map[string]any {
		if p["indexPatterns"] == nil {
			p["indexPatterns"] = []any{"logs-*"}
		}
		if p["allowedActions"] == nil {
			p["allowedActions"] = []any{"read"}
		}
		return spec(map[string]any{"indexPermissions": []any{p}})
	}
	b.put(kinds.OpenSearchRoles(), "pattern", index(map[string]any{"indexPatterns": []any{"/logs-[/"}}))
	b.put(kinds.OpenSearchRoles(), "cluster", spec(map[string]any{"clusterPermissions": []any{"/[/"}}))
	b.put(kinds.OpenSearchRoles(), "tenant", spec(map[string]any{"tenantPermissions": []any{map[string]any{"tenantPatterns": []any{"/[/"}, "allowedActions": []any{"kibana_all_read"}}}}))
	b.put(kinds.OpenSearchRoles(), "query", index(map[string]any{"dls": "{broken"}))
	b.put(kinds.OpenSearchRoles(), "unknown", index(map[string]any{"dls": `{"bool":{"must":[{"matchall":{}}]}}`}))
	b.put(kinds.OpenSearchRoles(), "action", index(map[string]any{"allowedActions": []any{"indexes:data/read/get"}}))
	b.put(kinds.OpenSearchRoles(), "mask", index(map[string]any{"maskedFields": []any{"a::NOSUCH"}}))
	b.put(kinds.OpenSearchActionGroups(), "group", spec(map[string]any{"allowedActions": []any{"/[/"}}))
	b.role("watchers")
	b.bind("bad", "watchers", "/[/")
	for name, text := range map[string]string{
		"pattern": "spec.indexPermissions[0].indexPatterns", "cluster": "spec.clusterPermissions", "tenant": "spec.tenantPermissions[0].tenantPatterns",
		"query": "spec.indexPermissions[0].dls", "unknown": "unknown query [matchall]",
		"action": "no action has the namespace of", "mask": "Masked field not valid: a::NOSUCH",
	} {
		b.state(kinds.OpenSearchRoles(), name, "ERROR", text)
		if status, data := b.search.RequestAsAdmin(t, http.MethodGet, path("roles", name), nil); status != http.StatusNotFound {
			t.Errorf("role %s: got %d %s", name, status, data)
		}
	}
	b.state(kinds.OpenSearchActionGroups(), "group", "ERROR", "spec.allowedActions")
	b.state(kinds.OpenSearchBindings(), "bad", "ERROR", "spec.users")
	b.user("anna") // Later writes take effect.
	b.bind("good", "watchers", "anna")
	b.state(kinds.OpenSearchBindings(), "good", "CREATED", "")
	b.login("anna", first, http.StatusOK)
	if status, answer := b.search.RequestAs(t, "anna", first, http.MethodGet, "/_cluster/health", nil); status != http.StatusOK {
		t.Errorf("anna may not what the role allows: %d %s", status, answer)
	}

	known := `/* own team */ {"bool":{"filter":[{"terms":{"team":[${user.roles}]}},{"term":{"owner":"${user.name}"}}]}}`
	b.put(kinds.OpenSearchRoles(), "unknown", index(map[string]any{"dls": known}))
	b.state(kinds.OpenSearchRoles(), "unknown", "CREATED", "")
	b.put(kinds.OpenSearchRoles(), "typo", index(map[string]any{"allowedActions": []any{"raed"}}))
	b.state(kinds.OpenSearchRoles(), "typo", "PENDING", `"raed" is neither an action nor an action group`)
	b.put(kinds.OpenSearchActionGroups(), "raed", spec(map[string]any{"allowedActions": []any{"read"}}))
	b.state(kinds.OpenSearchRoles(), "typo", "CREATED", "")
	for _, name := range []string{"bad", "good"} {
		b.remove(kinds.OpenSearchBindings(), name)
	}
	for _, name := range []string{"pattern", "cluster", "tenant", "query", "unknown", "action", "mask", "watchers", "typo"} {
		b.remove(kinds.OpenSearchRoles(), name)
	}
	b.remove(kinds.OpenSearchActionGroups(), "group")
	b.remove(kinds.OpenSearchActionGroups(), "raed")
	b.remove(kinds.OpenSearchUsers(), "anna")
}

func TestDriftIsRepairedAndReported(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serveWith(func(c *opensearchsync.Config) { c.DriftInterval = time.Second })
	b.user("anna")
	b.role("watchers")
	b.bind("one", "watchers", "anna")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
	b.login("anna", first, http.StatusOK)
	b.AwaitNoCalls()

	before, writes := b.search.CallsByOp(), b.search.Writes()
	looks := map[string]int{"GET internalusers": 5, "GET roles": 10, "GET rolesmapping": 5, "GET actiongroups": 5}
	b.awaitCalls(before, looks)
	if now := b.search.Writes(); now != writes {
		t.Errorf("looks at what is in step write %d times", now-writes)
	}
	made := testenv.SubtractCounts(before, b.search.CallsByOp())
	t.Logf("looks cost %v", made)
	if n := made["GET internalusers"]; made["GET roles"] > 2*n+4 || made["GET rolesmapping"] > n+2 || made["GET actiongroups"] > n+2 || made["GET tenants"] > 0 {
		t.Errorf("%d looks make %v", n, made)
	}

	b.write("roles/watchers", map[string]any{"cluster_permissions": []string{"*"}})
	b.warned("watchers", "DriftRepaired", "cluster_permissions of roles")
	b.write("rolesmapping/watchers", map[string]any{"users": []string{"kim"}})
	b.warned("one", "DriftRepaired", "users of rolesmapping")
	b.mappedTo("watchers", "kim", "anna")
	b.search.RequestAsAdmin(t, http.MethodDelete, path("internalusers", "anna"), nil)
	b.warned("anna", "DriftRepaired", "attributes of internalusers")
	b.login("anna", first, http.StatusOK)
	if listed := b.listed("roles/watchers"); strings.Contains(listed, `"*"`) {
		t.Errorf("the role is %s", listed)
	}
	b.remove(kinds.OpenSearchBindings(), "one")
	b.remove(kinds.OpenSearchRoles(), "watchers")
	b.remove(kinds.OpenSearchUsers(), "anna")
}

// Another client edits index permissions of a role by their positions. The role is the object's as a whole.
func TestEditsOfIndexPermissionsAreRepaired(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serveWith(func(c *opensearchsync.Config) { c.DriftInterval = time.Second })
	permission := func(pattern string) map[string]any {
		return map[string]any{"indexPatterns": []any{pattern}, "allowedActions": []any{"read", "search"}, "fls": []any{"a", "b"}, "dls": `{"match_all":{}}`}
	}
	b.put(kinds.OpenSearchRoles(), "watchers", spec(map[string]any{"indexPermissions": []any{permission("logs-*"), permission("audit-*")}}))
	b.state(kinds.OpenSearchRoles(), "watchers", "CREATED", "")
	b.AwaitNoCalls()
	want := b.listed("roles/watchers")
	for name, edit := range map[string]map[string]any{
		"more actions":   {"op": "add", "path": "/index_permissions/1/allowed_actions/-", "value": "write"},
		"another action": {"op": "replace", "path": "/index_permissions/0/allowed_actions/0", "value": "write"},
		"all documents":  {"op": "remove", "path": "/index_permissions/0/dls"},
		"all fields":     {"op": "remove", "path": "/index_permissions/1/fls"},
		"more fields":    {"op": "add", "path": "/index_permissions/0/fls/0", "value": "c"},
		"more indexes":   {"op": "add", "path": "/index_permissions/0/index_patterns/0", "value": "*"},
		"one more":       {"op": "add", "path": "/index_permissions/0", "value": map[string]any{"index_patterns": []string{"*"}, "allowed_actions": []string{"read"}}},
		"one less":       {"op": "remove", "path": "/index_permissions/1"},
	} {
		if status, answer := b.search.RequestAsAdmin(t, http.MethodPatch, "/_plugins/_security/api/roles/watchers", []any{edit}); status != http.StatusOK {
			t.Fatalf("%s: %d %s", name, status, answer)
		}
		testenv.Eventually(t, soon, func() error {
			if got := b.listed("roles/watchers"); got != want {
				return fmt.Errorf("%s: got %s, want %s", name, got, want)
			}
			return nil
		})
	}
	b.remove(kinds.OpenSearchRoles(), "watchers")
}

func TestListMappingsListsDirectAndIndirectHolders(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	client := opensearchv1connect.NewOpenSearchServiceClient(http.DefaultClient, b.serve().URL)
	b.write("roles/sample", map[string]any{"cluster_permissions": []string{"cluster_monitor"}})
	b.write("internalusers/direct", map[string]any{"password": first, "opendistro_security_roles": []string{"sample"}})
	b.write("internalusers/staff", map[string]any{"password": first, "backend_roles": []string{"team-a"}})
	of := &opensearchv1.ClusterRef{Namespace: namespace, Name: cluster}
	explain := func() string {
		var answer *opensearchv1.ExplainMappingResponse
		testenv.Eventually(t, soon, func() (err error) {
			answer, err = client.ExplainMapping(t.Context(), &opensearchv1.ExplainMappingRequest{Cluster: of, Role: "sample"})
			if connect.CodeOf(err) == connect.CodeInvalidArgument {
				t.Fatal(err)
			}
			return err
		})
		var all []string
		for _, h := range answer.GetHolders() {
			all = append(all, fmt.Sprintf("%s %t %v", h.GetUser(), h.GetDirect(), h.GetBackendRoles()))
			if status, info := b.search.TryLogin(t, h.GetUser(), first); status != http.StatusOK || !bytes.Contains(info, []byte(`"sample"`)) {
				t.Errorf("OpenSearch itself says %d %s", status, info)
			}
		}
		return strings.Join(all, " ")
	}
	if got, want := explain(), "direct true []"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	b.write("rolesmapping/sample", map[string]any{"backend_roles": []string{"team-*"}})
	if got, want := explain(), "direct true [] staff false [team-a]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	all, err := client.ListMappings(t.Context(), &opensearchv1.ListMappingsRequest{Cluster: of})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all.GetMappings(), func(m *opensearchv1.Mapping) bool { return m.GetRole() == "sample" })
	if at < 0 || len(all.GetMappings()[at].GetHolders()) != 2 {
		t.Errorf("got %v", all.GetMappings())
	}
}
