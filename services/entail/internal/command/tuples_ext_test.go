package command_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
)

// fakeTupleService is a TupleService with three pages of each list; the second page is empty.
type fakeTupleService struct {
	questions
	listed     []*tuplev1.ListTuplesRequest
	undeclared []*tuplev1.ListUndeclaredTuplesRequest
}

func next(token string) string { return map[string]string{"": "b", "b": "c"}[token] }

func (s *fakeTupleService) ListTuples(_ context.Context, r *tuplev1.ListTuplesRequest) (*tuplev1.ListTuplesResponse, error) {
	s.listed = append(s.listed, r)
	answer := &tuplev1.ListTuplesResponse{NextPageToken: next(r.GetPageToken())}
	for i := range r.GetPageSize() {
		if i < 2 && r.GetPageToken() != "b" {
			answer.Tuples = append(answer.Tuples, &tuplev1.Tuple{Key: key(r.GetPageToken(), i), Owners: []*tuplev1.Owner{{Kind: "Store", Name: "demo"}}})
		}
	}
	return answer, nil
}

func (s *fakeTupleService) ListLostBindings(_ context.Context, r *tuplev1.ListLostBindingsRequest) (*tuplev1.ListLostBindingsResponse, error) {
	if r.GetNamespace() != "" {
		return &tuplev1.ListLostBindingsResponse{NotChecked: []string{"pods"}}, nil
	}
	bob := &tuplev1.LostReference{Kind: "PolicyBinding", Namespace: "a", Name: "x", Field: "spec.subjects[0]", Object: "User/bob", Uid: "u", Reason: "NotFound"}
	return &tuplev1.ListLostBindingsResponse{References: []*tuplev1.LostReference{bob}, Total: 1}, nil
}

func (s *fakeTupleService) ListUndeclaredTuples(
	_ context.Context, r *tuplev1.ListUndeclaredTuplesRequest,
) (*tuplev1.ListUndeclaredTuplesResponse, error) {
	s.undeclared = append(s.undeclared, r)
	answer := &tuplev1.ListUndeclaredTuplesResponse{NextPageToken: next(r.GetPageToken())}
	for i := range int32(2) {
		if r.GetPageToken() != "b" {
			answer.Tuples = append(answer.Tuples, &tuplev1.UndeclaredTuple{Key: key(r.GetPageToken(), i), Fate: tuplev1.Fate_FATE_UNMANAGED})
		}
	}
	return answer, nil
}

func key(page string, i int32) *tuplev1.TupleKey {
	return &tuplev1.TupleKey{Object: fmt.Sprintf("doc:%s%d", page, i), Relation: "viewer", User: "user:1"}
}

func (s *fakeTupleService) PreviewAdoption(_ context.Context, r *tuplev1.PreviewAdoptionRequest) (*tuplev1.PreviewAdoptionResponse, error) {
	answer := &tuplev1.PreviewAdoptionResponse{Store: "iam", StoreId: "S1", Message: "It is another's.", NextPageToken: next(r.GetPageToken())}
	for i := range int32(2) {
		if r.GetPageToken() != "b" {
			answer.Tuples = append(answer.Tuples, &tuplev1.PreviewAdoptionResponse_Tuple{Key: key(r.GetPageToken(), i)})
		}
	}
	return answer, nil
}

func TestIAMAdoptListsDeletedTuples(t *testing.T) {
	var s fakeTupleService
	if got := s.run(t, "iam", "adopt", "--dry-run"); strings.Count(got.out, "doc:") != 4 || !strings.Contains(got.out, "It is another's.") {
		t.Errorf("got %+v", got)
	}
	if got := s.run(t, "iam", "adopt", "--dry-run", "-o", "json"); strings.Count(got.out, `"object"`) != 4 || !strings.Contains(got.out, `"S1"`) {
		t.Errorf("got %+v", got)
	}
	if got := s.run(t, "iam", "adopt"); got.code != 2 || !strings.Contains(got.err, "--dry-run") {
		t.Errorf("got %+v", got)
	}
}

func (s *fakeTupleService) ask(t *testing.T, args ...string) commandResult {
	t.Helper()
	return s.run(t, append([]string{"tuples"}, args...)...)
}

func (s *fakeTupleService) run(t *testing.T, args ...string) commandResult {
	t.Helper()
	_, handler := tuplev1connect.NewTupleServiceHandler(s)
	server := httptest.NewServer(handler)
	defer server.Close()
	return run(t, map[string]string{"ENTAIL_TUPLE_SERVER": server.URL}, args...)
}

func TestTuplesListStopsAtLimit(t *testing.T) {
	var s fakeTupleService
	got := s.ask(t, "list", "demo", "--limit", "3", "--object", "doc:1", "--relation", "viewer", "--user", "user:1", "--owner", "store/demo")
	if strings.Count(got.out, "Store/demo") != 3 || len(s.listed) != 3 || s.listed[2].GetPageSize() != 1 {
		t.Errorf("got %+v, asked %v", got, s.listed)
	}
	first := s.listed[0]
	if first.GetStore() != "demo" || first.GetObject() != "doc:1" || first.GetRelation() != "viewer" || first.GetUser() != "user:1" || first.GetOwner() != "store/demo" {
		t.Errorf("asked %v", first)
	}
}

func TestTuplesUndeclaredReadsAllPages(t *testing.T) {
	var s fakeTupleService
	got := s.ask(t, "undeclared", "demo", "-o", "json")
	if strings.Count(got.out, `"FATE_UNMANAGED"`) != 4 || len(s.undeclared) != 3 || s.undeclared[0].GetStore() != "demo" {
		t.Errorf("got %+v, asked %v", got, s.undeclared)
	}
	if got := s.ask(t, "undeclared", "demo", "--limit", "1"); strings.Count(got.out, "unmanaged") != 2 || !strings.HasSuffix(got.out, "There is more.\n") {
		t.Errorf("got %+v", got)
	}
	for _, wrong := range [][]string{{"list", "demo", "--limit", "0"}, {"undeclared", "demo", "--limit", "-1"}, {"undeclared"}} {
		if got := s.ask(t, wrong...); got.code != 2 {
			t.Errorf("%v: %+v", wrong, got)
		}
	}
}

func TestIAMLostListsReferencesAndWhatItDidNotCheck(t *testing.T) {
	_, handler := tuplev1connect.NewTupleServiceHandler(&fakeTupleService{})
	server := httptest.NewServer(handler)
	defer server.Close()
	for where, want := range map[string]string{
		"-A":      "a           policybinding/x   spec.subjects[0]   User/bob   u     NotFound\n",
		"-n team": "No PolicyBinding and no GroupMembership of namespace team names an object that is gone for good.\nNot checked: pods.\n",
	} {
		got := run(t, map[string]string{"ENTAIL_TUPLE_SERVER": server.URL}, append([]string{"iam", "lost"}, strings.Fields(where)...)...)
		if got.code != 0 || !strings.HasSuffix(got.out, want) {
			t.Errorf("%s: got %+v, want %q", where, got, want)
		}
	}
}
