package command_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
)

// questions answers the questions about a Store. It allows everything, unless a field says otherwise.
type questions struct {
	tuplev1connect.UnimplementedTupleServiceHandler
	denied, truncated bool
	fails             connect.Code
	checks            []*tuplev1.CheckRequest
	users             *tuplev1.ListUsersRequest
	objects           *tuplev1.ListObjectsRequest
	explained         *tuplev1.ExplainCheckRequest
	tree              *tuplev1.Decision
}

func (s *questions) err() error {
	if s.fails == 0 {
		return nil
	}
	return connect.NewError(s.fails, errors.New("the reason"))
}

func (s *questions) Check(_ context.Context, r *tuplev1.CheckRequest) (*tuplev1.CheckResponse, error) {
	s.checks = append(s.checks, r)
	if r.GetKey().GetRelation() == "veiwer" {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no such relation"))
	}
	return &tuplev1.CheckResponse{Allowed: !s.denied && r.GetKey().GetUser() != "user:mallory", AuthorizationModelId: "M1"}, s.err()
}

func (s *questions) ExplainCheck(_ context.Context, r *tuplev1.ExplainCheckRequest) (*tuplev1.ExplainCheckResponse, error) {
	s.explained = r
	tree := s.tree
	if tree == nil {
		tree = &tuplev1.Decision{Kind: tuplev1.Decision_KIND_RELATION, Answer: tuplev1.Decision_ANSWER_YES, Object: "document:roadmap", Relation: "viewer"}
	}
	return &tuplev1.ExplainCheckResponse{Allowed: !s.denied, Tree: tree, Truncated: s.truncated}, s.err()
}

func (s *questions) ListObjects(_ context.Context, r *tuplev1.ListObjectsRequest) (*tuplev1.ListObjectsResponse, error) {
	s.objects = r
	if s.denied {
		return &tuplev1.ListObjectsResponse{}, nil
	}
	return &tuplev1.ListObjectsResponse{Objects: []string{"document:roadmap"}, Truncated: s.truncated}, s.err()
}

func (s *questions) ListUsers(_ context.Context, r *tuplev1.ListUsersRequest) (*tuplev1.ListUsersResponse, error) {
	s.users = r
	return &tuplev1.ListUsersResponse{Users: []string{"user:*", "user:beth"}, Truncated: s.truncated}, s.err()
}

func (s *questions) Expand(context.Context, *tuplev1.ExpandRequest) (*tuplev1.ExpandResponse, error) {
	return &tuplev1.ExpandResponse{
		TreeJson: `{"root":{"name":"document:roadmap#viewer","union":{"nodes":[` +
			`{"leaf":{"users":{"users":["user:anne","user:mallory"]}}},{"leaf":{"computed":{"userset":"document:roadmap#editor"}}},` +
			`{"leaf":{"tupleToUserset":{"tupleset":"document:roadmap#workspace","computed":[{"userset":"workspace:acme#member"}]}}}]}}}`,
		Tuples: []*tuplev1.Tuple{{
			Key:    &tuplev1.TupleKey{Object: "document:roadmap", Relation: "viewer", User: "user:anne"},
			Owners: []*tuplev1.Owner{{Kind: "Store", Name: "demo"}},
		}},
	}, s.err()
}

// ask runs a command with a file questions.txt in the current directory.
func (s *questions) ask(t *testing.T, args ...string) commandResult {
	t.Helper()
	server := &fakeTupleService{questions: *s}
	got := server.run(t, args...)
	*s = server.questions
	return got
}

func TestExitCodesOfAnswersAboutStores(t *testing.T) {
	check, why := []string{"check", "demo", "user:beth", "viewer", "document:roadmap"}, []string{"why", "demo", "user:beth", "viewer", "document:roadmap"}
	objects, users := []string{"list-objects", "demo", "user:beth", "viewer", "document"}, []string{"list-users", "demo", "user", "viewer", "document:roadmap"}
	expand := []string{"expand", "demo", "viewer", "document:roadmap"}
	undecidedTree := &tuplev1.Decision{Kind: tuplev1.Decision_KIND_RELATION, Answer: tuplev1.Decision_ANSWER_UNDECIDED}
	deniedTree := &tuplev1.Decision{Kind: tuplev1.Decision_KIND_RELATION, Answer: tuplev1.Decision_ANSWER_NO}
	for name, test := range map[string]struct {
		server questions
		args   []string
		code   int
		out    string
		err    string
	}{
		"yes":                         {questions{}, check, 0, "yes\n", ""},
		"no":                          {questions{denied: true}, check, 1, "no: the tuples in OpenFGA do not give it, by model M1 of Store demo; entail why shows each step\n", ""},
		"no, with a tuple":            {questions{denied: true}, append(check, "--tuple", "user:a b c:d"), 1, "no: the tuples in OpenFGA and those of --tuple do not give it", ""},
		"an unknown name":             {questions{fails: connect.CodeNotFound}, check, 3, "", "entail: the reason"},
		"a check out of time":         {questions{fails: connect.CodeDeadlineExceeded}, check, 5, "", "entail: the answer is undecided: the reason\n"},
		"a check out of steps":        {questions{fails: connect.CodeResourceExhausted}, check, 5, "", "entail: the answer is undecided: the reason\n"},
		"a server that is away":       {questions{fails: connect.CodeUnavailable}, check, 4, "", "entail: the reason"},
		"a proven yes":                {questions{}, why, 0, "yes\n", ""},
		"a proven no":                 {questions{denied: true, tree: deniedTree}, why, 1, "no\n", ""},
		"a yes without proof":         {questions{tree: undecidedTree, truncated: true}, why, 5, "yes by OpenFGA; the steps below do not prove it", ""},
		"changing tuples":             {questions{fails: connect.CodeAborted}, why, 5, "", "undecided"},
		"objects":                     {questions{}, objects, 0, "document:roadmap\n", ""},
		"no objects":                  {questions{denied: true}, objects, 0, "None, by the tuples in OpenFGA and the model in force.\n", ""},
		"objects that may lack some":  {questions{truncated: true}, objects, 5, "Undecided: there may be more", ""},
		"objects out of time":         {questions{fails: connect.CodeDeadlineExceeded}, objects, 5, "", "undecided"},
		"users":                       {questions{}, users, 0, "user:*\nuser:beth\n", ""},
		"users that may lack some":    {questions{truncated: true}, users, 5, "Undecided: there may be more", ""},
		"users, for programs":         {questions{truncated: true}, append(users, "-o", "json"), 5, `"truncated": true`, ""},
		"an unknown name of users":    {questions{fails: connect.CodeNotFound}, users, 3, "", "the reason"},
		"an expansion":                {questions{}, expand, 0, "│  ├─ user:anne                                  Store/demo", ""},
		"an expansion out of time":    {questions{fails: connect.CodeDeadlineExceeded}, expand, 5, "", "undecided"},
		"too few arguments":           {questions{}, check[:4], 2, "", ""},
		"a context that is no object": {questions{}, append(check, "--context", "3"), 2, "", "--context is not a JSON object"},
		"a file that does not exist":  {questions{}, append(check, "--context", "@nowhere"), 2, "", "--context"},
		"half a tuple":                {questions{}, append(check, "--tuple", "user:a b"), 2, "", "USER RELATION OBJECT"},
		"a tuple with a bad context":  {questions{}, append(check, "--tuple", "user:a b c:d cond {"), 2, "", "the context of the condition"},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.server.ask(t, test.args...)
			if got.code != test.code || !strings.Contains(got.out, test.out) || !strings.Contains(got.err, test.err) || test.err == "" && test.code != 2 && got.err != "" {
				t.Errorf("got %+v, want code %d, out %q, err %q", got, test.code, test.out, test.err)
			}
		})
	}
}

func TestFlagsOfQuestionsReachServer(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("context.json", []byte(`{"level":3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--context", "@context.json", "--tuple", `user:a b c:d cond {"x": "a b"}`, "--tuple", "user:b c d:e", "--after", "store/demo"}
	var s questions
	for _, args := range [][]string{
		{"check", "demo", "user:beth", "viewer", "document:roadmap"},
		{"why", "demo", "user:beth", "viewer", "document:roadmap"},
		{"list-objects", "demo", "user:beth", "viewer", "document"},
		{"list-users", "demo", "role#assignee", "viewer", "document:roadmap"},
	} {
		if got := s.ask(t, append(args, flags...)...); got.code != 0 {
			t.Fatalf("%v: got %+v", args, got)
		}
	}
	for name, r := range map[string]interface {
		GetStore() string
		GetAfter() string
		GetContextualTuples() []*tuplev1.TupleKey
	}{"check": s.checks[0], "why": s.explained, "list-objects": s.objects, "list-users": s.users} {
		given := r.GetContextualTuples()
		if r.GetStore() != "demo" || r.GetAfter() != "store/demo" || len(given) != 2 || given[0].GetCondition().GetName() != "cond" ||
			given[0].GetCondition().GetContext().AsMap()["x"] != "a b" || given[1].GetObject() != "d:e" || given[1].GetCondition() != nil {
			t.Errorf("%s: got %v", name, r)
		}
	}
	if s.checks[0].GetContext().AsMap()["level"] != 3.0 || s.checks[0].GetKey().GetUser() != "user:beth" || s.checks[0].GetKey().GetObject() != "document:roadmap" {
		t.Errorf("got %v", s.checks[0])
	}
	if s.users.GetUserType() != "role#assignee" || s.users.GetObject() != "document:roadmap" || s.objects.GetType() != "document" || s.objects.GetUser() != "user:beth" {
		t.Errorf("got %v and %v", s.users, s.objects)
	}
}

func TestBatchHasWorstExitCode(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, test := range map[string]struct {
		server    questions
		questions string
		code      int
		out       string
	}{
		"all yes":      {questions{}, "# staff\nuser:beth viewer document:a\n\nuser:anne viewer document:a\n", 0, "yes"},
		"one no":       {questions{}, "user:beth viewer document:a\nuser:mallory viewer document:a\n", 1, "no"},
		"unknown":      {questions{}, "user:mallory viewer document:a\nuser:beth veiwer document:a\n", 3, "no such relation"},
		"undecided":    {questions{fails: connect.CodeDeadlineExceeded}, "user:beth viewer document:a\nuser:beth veiwer document:a\n", 5, "undecided"},
		"half a line":  {questions{}, "user:beth viewer\n", 2, ""},
		"no questions": {questions{}, "# none\n", 2, ""},
		"no server":    {questions{fails: connect.CodeUnavailable}, "user:beth viewer document:a\n", 4, ""},
	} {
		if err := os.WriteFile("questions.txt", []byte(test.questions), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := test.server.ask(t, "batch-check", "demo", "questions.txt"); got.code != test.code || !strings.Contains(got.out, test.out) {
			t.Errorf("%s: got %+v, want code %d and %q", name, got, test.code, test.out)
		}
	}
	var s questions
	if err := os.WriteFile("questions.txt", []byte("user:beth viewer document:a\nuser:anne viewer document:b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := s.ask(t, "batch-check", "demo", "questions.txt", "-o", "json", "--after", "store/demo")
	if got.code != 0 || strings.Count(got.out, `"answer": "yes"`) != 2 || s.checks[0].GetAfter() != "store/demo" || s.checks[1].GetAfter() != "" {
		t.Errorf("got %+v, asked %v", got, s.checks)
	}
	if !s.checks[1].GetHigherConsistency() {
		t.Error("the second question may be answered by a cache without the object")
	}
	late := questions{fails: connect.CodeDeadlineExceeded}
	if got := late.ask(t, "batch-check", "demo", "questions.txt", "--after", "store/demo"); got.code != 5 || late.checks[1].GetAfter() != "store/demo" {
		t.Errorf("after a wait in vain: got %+v, asked %v", got, late.checks)
	}
}
