//go:build integration

package opensearchsync_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	opensearchv1 "github.com/entail-dev/entail/gen/entail/opensearch/v1"
	"github.com/entail-dev/entail/gen/entail/opensearch/v1/opensearchv1connect"
	"github.com/entail-dev/entail/services/internal/kinds"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

func TestObjectsOfBothGroupsShareCluster(t *testing.T) {
	for name, of := range map[string]kinds.Kind{
		"declared now": kinds.OpenSearchClusters(), "declared as before": kinds.ToLegacyOpenSearchKind(kinds.OpenSearchClusters()),
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestEnv(t)
			b.Kube.ServeLegacyOpenSearch(t)
			b.Reflector()
			users, bindings := kinds.ToLegacyOpenSearchKind(kinds.OpenSearchUsers()), kinds.ToLegacyOpenSearchKind(kinds.OpenSearchBindings())
			running := b.serveWith(func(c *opensearchsync.Config) { c.Legacy = true })
			b.connectAs(of)
			b.put(users, "anna", spec(map[string]any{"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}}))
			b.role("watchers")
			b.put(bindings, "one", spec(map[string]any{"roles": []any{"watchers"}, "users": []any{"anna"}}))
			b.state(users, "anna", "CREATED", "")
			b.state(bindings, "one", "CREATED", "")
			b.login("anna", first, http.StatusOK)
			b.bind("one", "watchers", "anna") // An object of the same name in the other group.
			b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
			b.user("anna")
			b.state(kinds.OpenSearchUsers(), "anna", "ERROR", "another object also asks for")

			client := opensearchv1connect.NewOpenSearchServiceClient(http.DefaultClient, running.URL)
			answer, err := client.Preview(t.Context(), &opensearchv1.PreviewRequest{
				Cluster:   &opensearchv1.ClusterRef{Namespace: namespace, Name: cluster},
				Manifests: [][]byte{fmt.Appendf(nil, `{"apiVersion":"opensearch.opster.io/v1","kind":"OpensearchUserRoleBinding","metadata":{"name":"two"},"spec":{"opensearchCluster":{"name":%q},"roles":["watchers"],"users":["ben"]}}`, cluster)},
			})
			want := []string{`CHANGE rolesmapping/watchers password=false users:["anna"]->["anna","ben"]`, "OpensearchUserRoleBinding two CREATED Synced"}
			if got := feededState(answer); err != nil || !slices.Equal(got, want) {
				t.Errorf("the preview of one more tells %q, %v; want %q", got, err, want)
			}

			b.remove(bindings, "one")
			if got := b.mapped("watchers"); !slices.Equal(got, []string{"anna"}) {
				t.Errorf("the binding of the other group is left, and the mapping has %v", got)
			}
			answer, err = client.Preview(t.Context(), &opensearchv1.PreviewRequest{
				Cluster: &opensearchv1.ClusterRef{Namespace: namespace, Name: cluster},
				Deleted: []*opensearchv1.ObjectRef{{Kind: "OpensearchUserRoleBinding", Name: "one"}},
			})
			want = []string{`DELETE rolesmapping/watchers password=false users:["anna"]->`, "OpensearchUserRoleBinding one  "}
			if got := feededState(answer); err != nil || !slices.Equal(got, want) {
				t.Errorf("the preview of its deletion tells %q, %v; want %q", got, err, want)
			}
			b.remove(kinds.OpenSearchUsers(), "anna")
			b.login("anna", first, http.StatusOK) // The user belonged to the object of the other group.
			b.user("anna")
			b.state(kinds.OpenSearchUsers(), "anna", "ERROR", "another object also asks for")
			b.force(users, "anna") // The object has moved to the other group.
			b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
			b.login("anna", first, http.StatusOK)
			b.remove(kinds.OpenSearchUsers(), "anna")
			b.login("anna", first, http.StatusUnauthorized)
			b.remove(kinds.OpenSearchBindings(), "one")
			b.remove(kinds.OpenSearchRoles(), "watchers")
			b.remove(of, cluster)
		})
	}
}

func TestLegacyGroupIsIgnoredByDefault(t *testing.T) {
	b := newTestEnv(t)
	b.Kube.ServeLegacyOpenSearch(t)
	b.Reflector()
	b.connect()
	b.serve()
	users := kinds.ToLegacyOpenSearchKind(kinds.OpenSearchUsers())
	b.put(users, "kim", spec(map[string]any{"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}}))
	b.user("anna") // Created later: once it is in step, the service has received the other one.
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	b.AwaitNoCalls()
	b.absent("internalusers/kim")
	for _, o := range b.List(users).Items {
		if _, told := o.Object["status"]; told || len(o.GetFinalizers()) > 0 {
			t.Errorf("it was written: %v", o.Object)
		}
	}
	b.remove(users, "kim")
	b.remove(kinds.OpenSearchUsers(), "anna")
}

// If both groups have a cluster of one name, the newer group decides. Both lead to the same server, so objects are
// unaffected.
func TestClusterOfNewerGroupTakesPrecedence(t *testing.T) {
	b := newTestEnv(t)
	b.Kube.ServeLegacyOpenSearch(t)
	b.Reflector()
	b.serveWith(func(c *opensearchsync.Config) { c.Legacy = true })
	b.connectAs(kinds.ToLegacyOpenSearchKind(kinds.OpenSearchClusters()))
	b.user("anna")
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	b.connect()
	b.madeIn(kinds.OpenSearchUsers(), "anna")
	b.remove(kinds.OpenSearchUsers(), "anna")
	b.absent("internalusers/anna")
}
