package policy

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// golden returns a file from the tests of the policy library.
func golden(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "policy", "testdata", "loadbalancer", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// example returns the policy of load balancers after edits, given as pairs of old and new text.
func example(t *testing.T, edits ...string) string {
	t.Helper()
	content := golden(t, "policy.yaml")
	for i := 0; i < len(edits); i += 2 {
		if strings.Count(content, edits[i]) == 0 {
			t.Fatalf("%q is not in the example", edits[i])
		}
		content = strings.Replace(content, edits[i], edits[i+1], 1)
	}
	return content
}

// policyOfFile returns a policy of one file.
func policyOfFile(content string) *policyv1.Policy {
	files := []*policyv1.File{{Name: "policy.yaml", Content: []byte(content)}}
	return &policyv1.Policy{Source: &policyv1.Policy_Files{Files: &policyv1.Files{Files: files}}}
}

// policyOfStore returns the policy of a Store.
func policyOfStore(store string) *policyv1.Policy {
	return &policyv1.Policy{Source: &policyv1.Policy_Store{Store: store}}
}

// newServer returns a server with one Store, "demo", with one document: the example after edits.
func newServer(t *testing.T, edits ...string) *Server {
	t.Helper()
	content := example(t, edits...)
	return New(func(_ context.Context, store string, _ bool) ([]*syntax.Document, policy.Options, error) {
		if store != "demo" {
			return nil, policy.Options{}, rpc.NotFoundError("there is no Store %q", store)
		}
		documents, found := syntax.ParseFiles([]syntax.File{{Name: "policydocument/team/lb", Content: []byte(content)}}, syntax.ParseLimits{})
		if len(found) > 0 {
			t.Errorf("the example: %v", found)
		}
		return documents, policy.Options{RoleRelation: "assignee"}, nil
	})
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// expectRefused expects an error for the caller.
func expectRefused(t *testing.T, err error, code connect.Code, words string) {
	t.Helper()
	if connect.CodeOf(err) != code || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want %v: %s", err, code, words)
	}
}

// codes returns the codes of the findings, in order.
func codes(f *policyv1.Findings) []string {
	var list []string
	for _, d := range f.GetDiagnostics() {
		list = append(list, d.GetCode())
	}
	return list
}
