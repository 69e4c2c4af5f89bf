//go:build integration

package opensearchsync_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	opensearchv1 "github.com/entail-dev/entail/gen/entail/opensearch/v1"
	"github.com/entail-dev/entail/gen/entail/opensearch/v1/opensearchv1connect"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// manifest returns an object of the cluster as a user would apply it.
func (b *testEnv) manifest(kind, name string, spec map[string]any) []byte {
	b.T.Helper()
	spec["opensearchCluster"] = map[string]any{"name": cluster}
	data, err := json.Marshal(map[string]any{"apiVersion": "opensearch.org/v1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec})
	if err != nil {
		b.T.Fatal(err)
	}
	return data
}

// feededState returns a preview as one line for each write and verdict.
func feededState(m *opensearchv1.PreviewResponse) (all []string) {
	for _, w := range m.GetWrites() {
		line := fmt.Sprint(w.GetVerb(), " ", w.GetKind(), "/", w.GetName(), " password=", w.GetPassword())
		for _, f := range w.GetFields() {
			line += fmt.Sprintf(" %s:%s->%s", f.GetField(), f.GetBefore(), f.GetAfter())
		}
		all = append(all, line)
	}
	for _, v := range m.GetVerdicts() {
		all = append(all, fmt.Sprint(v.GetObject().GetKind(), " ", v.GetObject().GetName(), " ", v.GetState(), " ", v.GetReason()))
	}
	return all
}

// A preview returns exactly the later writes, and writes nothing itself.
func TestPreviewEqualsLaterWrites(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.write("internalusers/kim", map[string]any{"password": second})
	b.write("roles/theirs", map[string]any{"cluster_permissions": []string{"cluster_all"}})
	b.write("rolesmapping/theirs", map[string]any{"users": []string{"kim"}})
	b.connect()
	client := opensearchv1connect.NewOpenSearchServiceClient(http.DefaultClient, b.serve().URL)
	b.user("anna")
	b.bind("one", "theirs", "anna")
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
	b.AwaitNoCalls()
	passwordOf := func(key string) map[string]any { return map[string]any{"name": "passwords", "key": key} }
	of := &opensearchv1.ClusterRef{Namespace: namespace, Name: cluster}
	writes := len(b.search.WritesByOp())
	for name, test := range map[string]struct {
		request *opensearchv1.PreviewRequest
		want    []string
	}{
		"what is there already": {
			&opensearchv1.PreviewRequest{Manifests: [][]byte{b.manifest("OpensearchUser", "anna", map[string]any{"passwordFrom": passwordOf("anna")})}},
			[]string{"OpensearchUser anna CREATED Synced"},
		},
		"an attribute": {
			&opensearchv1.PreviewRequest{Manifests: [][]byte{b.manifest("OpensearchUser", "anna",
				map[string]any{"passwordFrom": passwordOf("anna"), "attributes": map[string]any{"team": "x"}})}},
			[]string{`CHANGE internalusers/anna password=false attributes:->{"team":"x"}`, "OpensearchUser anna CREATED Synced"},
		},
		"another password": {
			&opensearchv1.PreviewRequest{Manifests: [][]byte{b.manifest("OpensearchUser", "anna", map[string]any{"passwordFrom": passwordOf("ben")})}},
			[]string{`CHANGE internalusers/anna password=true`, "OpensearchUser anna CREATED Synced"},
		},
		"a user of others": {
			&opensearchv1.PreviewRequest{Manifests: [][]byte{b.manifest("OpensearchUser", "kim", map[string]any{"passwordFrom": passwordOf("anna")})}},
			[]string{"OpensearchUser kim ERROR NotManaged"},
		},
		"a role and who has it": {
			&opensearchv1.PreviewRequest{Manifests: [][]byte{
				b.manifest("OpensearchUserRoleBinding", "two", map[string]any{"roles": []string{"ours", "theirs"}, "users": []string{"ben"}}),
				b.manifest("OpensearchRole", "ours", map[string]any{"clusterPermissions": []string{"cluster_monitor"}}),
			}},
			[]string{
				`CREATE roles/ours password=false cluster_permissions:->["cluster_monitor"]`,
				`CREATE rolesmapping/ours password=false users:->["ben"]`,
				`CHANGE rolesmapping/theirs password=false users:["anna","kim"]->["anna","ben","kim"]`,
				"OpensearchRole ours CREATED Synced", "OpensearchUserRoleBinding two CREATED Synced",
			},
		},
		"without the role": {
			&opensearchv1.PreviewRequest{Manifests: [][]byte{
				b.manifest("OpensearchUserRoleBinding", "two", map[string]any{"roles": []string{"ours"}, "users": []string{"ben"}}),
			}},
			[]string{"OpensearchUserRoleBinding two PENDING RoleMissing"},
		},
		"all goes": {
			&opensearchv1.PreviewRequest{Deleted: []*opensearchv1.ObjectRef{
				{Kind: "OpensearchUserRoleBinding", Name: "one"}, {Kind: "OpensearchUser", Name: "anna"},
			}},
			[]string{
				"DELETE internalusers/anna password=false", `CHANGE rolesmapping/theirs password=false users:["anna","kim"]->["kim"]`,
				"OpensearchUser anna  ", "OpensearchUserRoleBinding one  ",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.request.Cluster = of
			answer, err := client.Preview(t.Context(), test.request)
			if err != nil {
				t.Fatal(err)
			}
			if got := feededState(answer); !slices.Equal(got, test.want) {
				t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if strings.Contains(answer.String(), "entail-password") {
				t.Error("it tells what stands for a password")
			}
		})
	}
	for name, request := range map[string]*opensearchv1.PreviewRequest{
		"another namespace": {Manifests: [][]byte{[]byte(`{"kind":"OpensearchRole","metadata":{"name":"r","namespace":"other"},"spec":{"opensearchCluster":{"name":"search"}}}`)}},
		"another cluster":   {Manifests: [][]byte{[]byte(`{"kind":"OpensearchRole","metadata":{"name":"r"},"spec":{"opensearchCluster":{"name":"other"}}}`)}},
		"another kind":      {Manifests: [][]byte{[]byte(`{"kind":"Secret","metadata":{"name":"r"}}`)}},
		"a typo":            {Manifests: [][]byte{b.manifest("OpensearchRole", "r", map[string]any{"clusterPermission": []string{"x"}})}},
		"nothing at all":    {Manifests: [][]byte{nil}},
		"what is not there": {Deleted: []*opensearchv1.ObjectRef{{Kind: "OpensearchRole", Name: "r"}}},
	} {
		request.Cluster = of
		if _, err := client.Preview(t.Context(), request); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := len(b.search.WritesByOp()); now != writes {
		t.Errorf("%d writes were made", now-writes)
	}
}
