//go:build integration

package opensearchsync_test

import (
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

func TestQueriesReportOwnersOfEntities(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.write("internalusers/kim", map[string]any{"password": second})
	b.write("roles/theirs", map[string]any{"cluster_permissions": []string{"cluster_all"}})
	b.write("rolesmapping/theirs", map[string]any{"users": []string{"kim"}})
	b.connect()
	client := opensearchv1connect.NewOpenSearchServiceClient(http.DefaultClient, b.serve().URL)
	of := &opensearchv1.ClusterRef{Namespace: namespace, Name: cluster}
	// A forged mark does not give access to another object's user.
	b.put(kinds.OpenSearchUsers(), "anna", spec(map[string]any{
		"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}, "attributes": map[string]any{"k8s-uid": "another's", "team": "x"},
	}))
	b.user("ben")
	b.put(kinds.OpenSearchUsers(), "kim", spec(map[string]any{"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}}))
	b.bind("one", "theirs", "anna", "ben")
	b.bind("two", "theirs", "ben")
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "") // Two users may share one Secret.
	b.state(kinds.OpenSearchUsers(), "ben", "CREATED", "")
	b.state(kinds.OpenSearchUsers(), "kim", "ERROR", "from another author")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
	b.state(kinds.OpenSearchBindings(), "two", "CREATED", "")
	b.AwaitNoCalls() // The informer now holds the written statuses.

	users, err := client.ListUsers(t.Context(), &opensearchv1.ListUsersRequest{Cluster: of})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, u := range users.GetUsers() {
		got[u.GetName()] = fmt.Sprint(u.GetOwner(), " ", u.GetAskedBy(), " ", u.GetState(), " ", u.GetReserved())
	}
	for name, want := range map[string]string{
		"anna": "default/anna default/anna CREATED false", "kim": " default/kim ERROR false", "admin": "   true",
	} {
		if got[name] != want {
			t.Errorf("user %s is of %q, want %q", name, got[name], want)
		}
	}
	explained, err := client.ExplainMapping(t.Context(), &opensearchv1.ExplainMappingRequest{Cluster: of, Role: "theirs"})
	if err != nil {
		t.Fatal(err)
	}
	var entries []string
	for _, e := range explained.GetEntries() {
		slices.Sort(e.GetBindings())
		entries = append(entries, fmt.Sprint(e.GetValue(), e.GetBindings(), e.GetForeign(), e.GetExists()))
	}
	if want := []string{"kim[] true true", "anna[default/one] false true", "ben[default/one default/two] false true"}; !slices.Equal(entries, want) {
		t.Errorf("the mapping is explained by %q, want %q", entries, want)
	}
	_, err = client.ExplainMapping(t.Context(), &opensearchv1.ExplainMappingRequest{Cluster: of, Role: "theris"})
	if connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "did you mean theirs?") {
		t.Errorf("got %v for an unknown role, want NotFound with the nearest role", err)
	}
	status, err := client.GetSyncStatus(t.Context(), &opensearchv1.GetSyncStatusRequest{Cluster: of})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range status.GetKinds() {
		if states := kind.GetStates(); kind.GetKind() == "internalusers" && (states["CREATED"] != 2 || states["ERROR"] != 1) {
			t.Errorf("users are counted as %v", states)
		}
	}
	_, err = client.ListRoles(t.Context(), &opensearchv1.ListRolesRequest{Cluster: &opensearchv1.ClusterRef{Namespace: namespace, Name: "none"}})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("of a cluster that is not there: %v", err)
	}

	// An edit of metadata does not send the password again.
	b.AwaitNoCalls()
	puts := b.search.WritesByOp()["PUT internalusers/anna"]
	b.secretLabel("passwords")
	b.put(kinds.OpenSearchUsers(), "anna", spec(map[string]any{
		"passwordFrom": map[string]any{"name": "passwords", "key": "anna"}, "attributes": map[string]any{"team": "y"},
	}))
	b.attribute("anna", "team", "y")
	if now := b.search.WritesByOp()["PUT internalusers/anna"]; now != puts {
		t.Errorf("the password is sent %d times more", now-puts)
	}
	for _, name := range []string{"one", "two"} {
		b.remove(kinds.OpenSearchBindings(), name)
	}
	for _, name := range []string{"anna", "ben", "kim"} {
		b.remove(kinds.OpenSearchUsers(), name)
	}
	b.login("kim", second, http.StatusOK)
}
