package command_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	opensearchv1 "github.com/entail-dev/entail/gen/entail/opensearch/v1"
	"github.com/entail-dev/entail/gen/entail/opensearch/v1/opensearchv1connect"
	"github.com/entail-dev/entail/services/entail/internal/exit"
)

// readersFile is a binding of the cluster.
const readersFile = "kind: OpensearchUserRoleBinding\nmetadata: {name: readers}\nspec: {users: [anna]}\n"

// fakeOpenSearchService is an OpenSearchService of a cluster with one object of each kind.
type fakeOpenSearchService struct {
	opensearchv1connect.UnimplementedOpenSearchServiceHandler
	asked []*opensearchv1.ClusterRef
}

func (s *fakeOpenSearchService) ListUsers(_ context.Context, r *opensearchv1.ListUsersRequest) (*opensearchv1.ListUsersResponse, error) {
	s.asked = append(s.asked, r.GetCluster())
	return &opensearchv1.ListUsersResponse{Users: []*opensearchv1.Thing{
		{Name: "admin", Exists: true, Reserved: true},
		{Name: "anna", Exists: true, Owner: "default/anna", AskedBy: "default/anna", State: "CREATED"},
		{Name: "kim", Exists: true, AskedBy: "default/kim", State: "ERROR", Reason: "from another author"},
	}}, nil
}

func (s *fakeOpenSearchService) ListRoles(_ context.Context, r *opensearchv1.ListRolesRequest) (*opensearchv1.ListRolesResponse, error) {
	s.asked = append(s.asked, r.GetCluster())
	return &opensearchv1.ListRolesResponse{Roles: []*opensearchv1.Thing{{Name: "logs", Owner: "default/logs", AskedBy: "default/logs", State: "PENDING"}}}, nil
}

func (s *fakeOpenSearchService) ListMappings(_ context.Context, r *opensearchv1.ListMappingsRequest) (*opensearchv1.ListMappingsResponse, error) {
	s.asked = append(s.asked, r.GetCluster())
	return &opensearchv1.ListMappingsResponse{Mappings: []*opensearchv1.Mapping{{Role: "logs", Users: []string{"anna", "kim"}, Bindings: []string{"default/one"}}}}, nil
}

func (s *fakeOpenSearchService) ExplainMapping(_ context.Context, r *opensearchv1.ExplainMappingRequest) (*opensearchv1.ExplainMappingResponse, error) {
	s.asked = append(s.asked, r.GetCluster())
	switch r.GetRole() {
	case "nobodys":
		return &opensearchv1.ExplainMappingResponse{}, nil
	case "direct":
		return &opensearchv1.ExplainMappingResponse{Holders: []*opensearchv1.Holder{{User: "ben", Direct: true, BackendRoles: []string{"staff"}}}}, nil
	}
	return &opensearchv1.ExplainMappingResponse{Entries: []*opensearchv1.Entry{
		{List: "users", Value: "anna", Bindings: []string{"default/one", "default/two"}, Exists: true},
		{List: "users", Value: "kim", Foreign: true, Exists: true},
		{List: "hosts", Value: "h", Bindings: []string{"default/one"}},
		{List: "hosts", Value: "old", Exists: true},
	}}, nil
}

func (s *fakeOpenSearchService) GetSyncStatus(_ context.Context, r *opensearchv1.GetSyncStatusRequest) (*opensearchv1.GetSyncStatusResponse, error) {
	s.asked = append(s.asked, r.GetCluster())
	return &opensearchv1.GetSyncStatusResponse{Kinds: []*opensearchv1.KindStatus{
		{Kind: "internalusers", States: map[string]int32{"CREATED": 2, "": 1}}, {Kind: "roles"},
	}}, nil
}

func (s *fakeOpenSearchService) Preview(_ context.Context, r *opensearchv1.PreviewRequest) (*opensearchv1.PreviewResponse, error) {
	s.asked = append(s.asked, r.GetCluster())
	answer := &opensearchv1.PreviewResponse{}
	for _, manifest := range r.GetManifests() {
		if !strings.Contains(string(manifest), `"users":["anna"]`) {
			return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("not what the file says"))
		}
		answer.Writes = []*opensearchv1.Write{
			{Kind: "internalusers", Name: "anna", Verb: "CREATE", Password: true},
			{Kind: "rolesmapping", Name: "logs", Verb: "CHANGE", Fields: []*opensearchv1.FieldChange{{Field: "users", After: `["anna"]`}}},
		}
		answer.Verdicts = []*opensearchv1.Verdict{{
			Object: &opensearchv1.ObjectRef{Kind: "OpensearchUserRoleBinding", Name: "readers"}, State: "PENDING", Reason: "RoleMissing", Message: "not there yet",
		}}
	}
	for _, ref := range r.GetDeleted() {
		answer.Verdicts = append(answer.Verdicts, &opensearchv1.Verdict{Object: ref})
	}
	return answer, nil
}

func TestPreviewRefusesUnknownManifest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "role.yaml")
	if err := os.WriteFile(file, []byte("kind: Role\nmetadata: {name: r}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"":                         "nothing to preview",
		"-f " + file:               `kind "Role" asks for nothing in OpenSearch`,
		"-f /nowhere":              "no such file",
		"--delete OpensearchRole":  "is not KIND/NAME",
		"--delete ConfigMap/thing": `kind "ConfigMap"`,
	} {
		got := run(t, nil, append([]string{"opensearch", "preview"}, strings.Fields(args)...)...)
		if got.code != exit.Usage || !strings.Contains(got.err, want) {
			t.Errorf("%q ends with %d: %s", args, got.code, got.err)
		}
	}
}

func TestOpenSearchListsEntitiesWithOwners(t *testing.T) {
	file := filepath.Join(t.TempDir(), "binding.yaml")
	if err := os.WriteFile(file, []byte(readersFile), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string][]string{
		"preview -f " + file: {
			"create internalusers anna\n  with the password in its Secret\n", "change rolesmapping logs\n  users: nothing -> [\"anna\"]\n",
			"OpensearchUserRoleBinding   readers   PENDING   RoleMissing   not there yet",
		},
		"preview --delete OpensearchRole/logs": {"Nothing would be written", "OpensearchRole   logs   deleted"},
		"users": {
			"USER    IS      BELONGS TO          DECLARED BY    STATE     WHY\n", "admin   there   OpenSearch itself", "anna    there   default/anna", "kim     there   others",
			"from another author",
		},
		"roles":           {"logs   missing   default/logs"},
		"mapping":         {"logs   anna, kim", "default/one"},
		"mapping logs":    {"anna    default/one, default/two        there", "kim     others", "h       default/one                     missing", "a binding that no longer does"},
		"mapping nobodys": {"Nobody has the role"},
		"mapping direct":  {"User ben (directly, staff) has the role."},
		"status":          {"internalusers   CREATED        2 objects", "not seen yet   1 object\n", "roles           -              0"},
		"users -o json":   {`"askedBy"`},
	} {
		t.Run(args, func(t *testing.T) {
			s := &fakeOpenSearchService{}
			_, handler := opensearchv1connect.NewOpenSearchServiceHandler(s)
			server := httptest.NewServer(handler)
			defer server.Close()
			all := append([]string{"opensearch"}, strings.Fields(args)...)
			got := run(t, map[string]string{"ENTAIL_OPENSEARCH_SERVER": server.URL}, append(all, "-n", "team", "--cluster", "logs")...)
			for _, text := range want {
				if !strings.Contains(got.out, text) {
					t.Errorf("%q lacks %q (%s)", got.out, text, got.err)
				}
			}
			if len(s.asked) != 1 || s.asked[0].GetNamespace() != "team" || s.asked[0].GetName() != "logs" {
				t.Errorf("asked about %v", s.asked)
			}
		})
	}
}
