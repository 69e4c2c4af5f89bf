package query

import (
	"testing"
	"time"

	"connectrpc.com/connect"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
)

func TestQuestionsAboutUnknownNamesSuggestOthers(t *testing.T) {
	s := newQueryFixture(t, one).server(fakeOpenFGA{})
	check := func(store, user, relation, object string, contextual ...*tuplev1.TupleKey) error {
		key := &tuplev1.TupleKey{Object: object, Relation: relation, User: user}
		_, err := s.Check(t.Context(), &tuplev1.CheckRequest{Store: store, Key: key, ContextualTuples: contextual})
		return err
	}
	listUsers := func(typ, relation, object string) error {
		_, err := s.ListUsers(t.Context(), &tuplev1.ListUsersRequest{Store: "a", UserType: typ, Relation: relation, Object: object})
		return err
	}
	listObjects := func(user, relation, typ string) error {
		_, err := s.ListObjects(t.Context(), &tuplev1.ListObjectsRequest{Store: "a", User: user, Relation: relation, Type: typ})
		return err
	}
	_, expand := s.Expand(t.Context(), &tuplev1.ExpandRequest{Store: "a", Relation: "view", Object: "doc:1"})
	_, explain := s.ExplainCheck(t.Context(), &tuplev1.ExplainCheckRequest{Store: "a", Key: &tuplev1.TupleKey{Object: "doc:1", Relation: "vewer", User: "user:1"}})
	given := func(condition string) *tuplev1.TupleKey {
		return &tuplev1.TupleKey{Object: "doc:1", Relation: "viewer", User: "user:1", Condition: &tuplev1.Condition{Name: condition}}
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"a Store":                       {check("b", "user:1", "viewer", "doc:1"), `not_found: there is no Store "b"; the stores are a`},
		"a type of an object":           {check("a", "user:1", "viewer", "docs:1"), `not_found: the model has no type "docs"; did you mean doc?`},
		"a relation":                    {check("a", "user:1", "veiwer", "doc:1"), `not_found: type doc has no relation "veiwer"; did you mean viewer?`},
		"a relation of a bare type":     {check("a", "user:1", "viewer", "user:1"), `not_found: type user has no relation "viewer"`},
		"a type of a user":              {check("a", "usr:1", "viewer", "doc:1"), `not_found: the model has no type "usr"; did you mean user?`},
		"a relation of a userset":       {check("a", "doc:1#view", "viewer", "doc:1"), `not_found: type doc has no relation "view"; did you mean viewer?`},
		"a user without a type":         {check("a", "beth", "viewer", "doc:1"), `invalid_argument: user "beth" is not TYPE:ID, TYPE:ID#RELATION or TYPE:*; did you mean user:beth?`},
		"an object without a type":      {check("a", "user:1", "viewer", "doc"), `invalid_argument: object "doc" is not TYPE:ID, such as document:roadmap`},
		"a name in a contextual tuple":  {check("a", "user:1", "viewer", "doc:1", &tuplev1.TupleKey{Object: "dok:1", Relation: "viewer", User: "user:1"}), `not_found: the model has no type "dok"; did you mean doc?`},
		"a condition":                   {check("a", "user:1", "viewer", "doc:1", given("larg")), `not_found: the model has no condition "larg"; did you mean large?`},
		"a type of listed users":        {listUsers("usr", "viewer", "doc:1"), `not_found: the model has no type "usr"; did you mean user?`},
		"a relation of listed usersets": {listUsers("doc#vieww", "viewer", "doc:1"), `not_found: type doc has no relation "vieww"; did you mean viewer?`},
		"an object with listed users":   {listUsers("user", "viewer", "dc:1"), `not_found: the model has no type "dc"; did you mean doc?`},
		"a type of listed objects":      {listObjects("user:1", "viewer", "doc1"), `not_found: the model has no type "doc1"; did you mean doc?`},
		"a user with listed objects":    {listObjects("usr:1", "viewer", "doc"), `not_found: the model has no type "usr"; did you mean user?`},
		"a relation to expand":          {expand, `not_found: type doc has no relation "view"; did you mean viewer?`},
		"a relation to explain":         {explain, `not_found: type doc has no relation "vewer"; did you mean viewer?`},
	} {
		if test.err == nil || test.err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", name, test.err, test.want)
		}
	}
	for name, err := range map[string]error{
		"a check": check("a", "user:1", "viewer", "doc:1", given("large")), "every user": check("a", "user:*", "viewer", "doc:1"),
		"a userset": check("a", "doc:1#viewer", "viewer", "doc:1"), "users": listUsers("user", "viewer", "doc:1"), "objects": listObjects("user:1", "viewer", "doc"),
	} {
		if err != nil {
			t.Errorf("%s: got %v, want an answer", name, err)
		}
	}
}

func TestTruncatedListsAreMarked(t *testing.T) {
	for name, test := range map[string]struct {
		openFGA fakeOpenFGA
		want    bool
	}{
		"a short list":        {fakeOpenFGA{results: 2}, false},
		"as many as may be":   {fakeOpenFGA{results: 4}, true},
		"all the time it has": {fakeOpenFGA{results: 2, delay: 20 * time.Millisecond}, true},
	} {
		s := newQueryFixture(t, one).server(test.openFGA)
		s.cfg.ListLimits = ListLimits{Results: 4, Deadline: 20 * time.Millisecond}
		if test.openFGA.delay == 0 {
			s.cfg.ListLimits.Deadline = time.Minute
		}
		objects, err := s.ListObjects(t.Context(), &tuplev1.ListObjectsRequest{Store: "a", User: "user:1", Relation: "viewer", Type: "doc"})
		if err != nil || objects.GetTruncated() != test.want {
			t.Errorf("%s: objects: got %t, %v, want %t", name, objects.GetTruncated(), err, test.want)
		}
		users, err := s.ListUsers(t.Context(), &tuplev1.ListUsersRequest{Store: "a", UserType: "user", Relation: "viewer", Object: "doc:1"})
		if err != nil || users.GetTruncated() != test.want {
			t.Errorf("%s: users: got %t, %v, want %t", name, users.GetTruncated(), err, test.want)
		}
		if test.openFGA.results == 2 && (len(users.GetUsers()) != 3 || users.GetUsers()[0] != "user:*" || users.GetUsers()[2] != "user:anne") {
			t.Errorf("%s: got users %q", name, users.GetUsers())
		}
	}
}

func TestModelThatOpenFGALostIsNotFound(t *testing.T) {
	w := newQueryFixture(t, one)
	w.model = nil
	_, err := w.server(fakeOpenFGA{}).Check(t.Context(), &tuplev1.CheckRequest{Store: "a", Key: viewerKey})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("got %v, want NotFound", err)
	}
}

func TestTupleFiltersWithUnknownNamesSuggestOthers(t *testing.T) {
	f := newQueryFixture(t, one)
	f.module("docs", "a", nil, two)
	s := f.server(fakeOpenFGA{})
	for name, test := range map[string]struct {
		request *tuplev1.ListTuplesRequest
		want    string
	}{
		"a type":               {&tuplev1.ListTuplesRequest{Object: "dok:1"}, `not_found: the model has no type "dok"; did you mean doc?`},
		"a relation of a type": {&tuplev1.ListTuplesRequest{Object: "doc:1", Relation: "veiwer"}, `not_found: type doc has no relation "veiwer"; did you mean viewer?`},
		"a relation":           {&tuplev1.ListTuplesRequest{Relation: "veiwer"}, `not_found: no type has a relation "veiwer"; did you mean viewer?`},
		"a type of a user":     {&tuplev1.ListTuplesRequest{User: "usr:1"}, `not_found: the model has no type "usr"; did you mean user?`},
		"a module":             {&tuplev1.ListTuplesRequest{Owner: "authorizationmodel/dosc"}, `not_found: no authorizationmodel "dosc" declares tuples of Store "a"; did you mean docs?`},
		"a kind":               {&tuplev1.ListTuplesRequest{Owner: "modell/docs"}, `not_found: no object of kind "modell" declares tuples; the kinds are store, authorizationmodel`},
		"another Store":        {&tuplev1.ListTuplesRequest{Owner: "store/b"}, `not_found: no store "b" declares tuples of Store "a"; the names are a`},
		"none: no such object": {&tuplev1.ListTuplesRequest{Object: "doc:9"}, ""},
		"none: no such tuple":  {&tuplev1.ListTuplesRequest{Object: "doc:1", User: "user:2", Owner: "store/a"}, ""},
	} {
		test.request.Store = "a"
		_, err := s.ListTuples(t.Context(), test.request)
		if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
	_, err := s.ExplainTuple(t.Context(), &tuplev1.ExplainTupleRequest{Store: "a", Key: &tuplev1.TupleKey{Object: "doc:1", Relation: "vewer", User: "user:1"}})
	if want := `not_found: type doc has no relation "vewer"; did you mean viewer?`; err == nil || err.Error() != want {
		t.Errorf("a tuple to explain: got %v, want %s", err, want)
	}
}
