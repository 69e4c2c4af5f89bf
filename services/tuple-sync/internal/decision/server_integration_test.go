//go:build integration

package decision

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/server"
	"github.com/openfga/openfga/pkg/storage/memory"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/entail-dev/entail/services/internal/fga/validation"
	"github.com/entail-dev/entail/services/internal/seeds"
)

// CI compares fewModels random models, and a night modelsPerRound for each of its rounds.
const (
	fewModels      = 60
	modelsPerRound = 25
)

// TestTreesOfRandomModelsHaveAnswerOfCheck compares trees with a real OpenFGA server in this process.
func TestTreesOfRandomModelsHaveAnswerOfCheck(t *testing.T) {
	s := server.MustNewServerWithOpts(server.WithDatastore(memory.New()))
	t.Cleanup(s.Close)
	first, answered := seeds.FirstSeed(t), map[string]int{}
	for i := range max(fewModels, modelsPerRound*seeds.RoundCount(t, 0)) {
		seed := first + uint64(i)
		newRandomWorld(t, s, rand.New(rand.NewPCG(seed, 41))).compare(t, seed, answered)
	}
	t.Logf("answers: %v", answered)
	if all := answered["yes"] + answered["no"]; answered["yes"] < all*3/10 || answered["yes"] > all*7/10 || answered["tree undecided"] > all/50 {
		t.Errorf("got %v, want 30 to 70 %% yes, and few undecided trees", answered)
	}
}

// randomWorld is a store with a random model and random tuples.
type randomWorld struct {
	server      *server.Server
	store, text string
	types       *typesystem.TypeSystem
	tuples      []*openfgav1.TupleKey
	context     *structpb.Struct
}

func newRandomWorld(t *testing.T, s *server.Server, r *rand.Rand) *randomWorld {
	t.Helper()
	w := &randomWorld{server: s}
	created, err := s.CreateStore(t.Context(), &openfgav1.CreateStoreRequest{Name: "random"})
	if err != nil {
		t.Fatal(err)
	}
	w.store = created.GetId()
	for {
		w.text = randomModel(r)
		m := parseModel(t, w.text)
		if w.types, err = typesystem.NewAndValidate(t.Context(), m); err != nil {
			continue // A relation that no tuple can give is no valid part of a model.
		}
		if _, err = s.WriteAuthorizationModel(t.Context(), &openfgav1.WriteAuthorizationModelRequest{
			StoreId: w.store, SchemaVersion: m.GetSchemaVersion(), TypeDefinitions: m.GetTypeDefinitions(), Conditions: m.GetConditions(),
		}); err == nil {
			break
		}
	}
	for range 400 {
		key := randomTuple(r)
		same := func(other *openfgav1.TupleKey) bool {
			return other.GetObject() == key.GetObject() && other.GetRelation() == key.GetRelation() && other.GetUser() == key.GetUser()
		}
		implicit := key.GetUser() == key.GetObject()+"#"+key.GetRelation()
		if validation.CheckTuple(w.types, key) == nil && !implicit && !slices.ContainsFunc(w.tuples, same) && len(w.tuples) < 60 {
			w.tuples = append(w.tuples, key)
		}
	}
	if len(w.tuples) > 0 {
		if _, err := s.Write(t.Context(), &openfgav1.WriteRequest{StoreId: w.store, Writes: &openfgav1.WriteRequestWrites{TupleKeys: w.tuples}}); err != nil {
			t.Fatal(err)
		}
	}
	if r.IntN(2) == 0 {
		w.context = &structpb.Struct{Fields: map[string]*structpb.Value{"level": structpb.NewNumberValue(float64(r.IntN(10)))}}
	}
	return w
}

// compare asks about every user, relation and object.
func (w *randomWorld) compare(t *testing.T, seed uint64, answered map[string]int) {
	t.Helper()
	for typ, relations := range w.types.GetAllRelations() {
		for relation := range relations {
			for object := range 2 {
				for _, user := range []string{"user:0", "user:1", "user:*", "group:0#member"} {
					w.compareAnswer(t, seed, answered, Question{Object: fmt.Sprint(typ, ":", object), Relation: relation, User: user, Context: w.context})
				}
			}
		}
	}
}

func (w *randomWorld) compareAnswer(t *testing.T, seed uint64, answered map[string]int, q Question) {
	t.Helper()
	tree, truncated := explain(t, w.types, tupleList{tuples: w.tuples}, q)
	check, err := w.server.Check(t.Context(), &openfgav1.CheckRequest{
		StoreId: w.store, Context: q.Context, TupleKey: &openfgav1.CheckRequestTupleKey{Object: q.Object, Relation: q.Relation, User: q.User},
	})
	got := map[Answer]string{Yes: "yes", No: "no", Undecided: "undecided"}[tree.Answer]
	want := map[bool]string{true: "yes", false: "no"}[check.GetAllowed()]
	switch {
	case err != nil:
		want = "undecided"
	case tree.Answer == Undecided:
		// OpenFGA ignores a missing parameter if another tuple of the same relation is valid. Its answer about a "but
		// not" whose excluded relation depends on itself is not always the same.
		answered["tree undecided"]++
		return
	}
	answered[want]++
	if got != want || truncated {
		t.Errorf("seed %d: %v: got %s, want %s (%v, truncated %t)\n%s\n%v", seed, q, got, want, err, truncated, w.text, w.tuples)
	}
}

// randomModel returns a model with all kinds of definitions.
func randomModel(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("model\n  schema 1.1\ntype user\ntype group\n  relations\n    define member: [user, group#member, user:*]\n")
	for _, typ := range []string{"folder", "doc"} {
		fmt.Fprintf(&b, "type %s\n  relations\n    define parent: [folder]\n    define owner: [user, group#member]\n", typ)
		known := []string{"owner"}
		for _, name := range []string{"viewer", "editor", "auditor"} {
			fmt.Fprintf(&b, "    define %s: %s\n", name, randomDefinition(r, known))
			known = append(known, name)
		}
	}
	b.WriteString("condition high(level: int) {\n  level > 4\n}\n")
	return b.String()
}

// randomDefinition returns the definition of a relation. Users may be assigned in its first part.
func randomDefinition(r *rand.Rand, known []string) string {
	direct := []string{"[user]", "[user, group#member]", "[user:*, user]", "[user, group#member, user with high]", "[folder#viewer, user]", "[user with high]"}
	first := direct[r.IntN(len(direct))]
	part := func() string {
		switch name := known[r.IntN(len(known))]; r.IntN(4) {
		case 0:
			return []string{"viewer", "owner", "auditor"}[r.IntN(3)] + " from parent"
		case 1:
			return "(" + name + " but not owner)"
		default:
			return name
		}
	}
	switch r.IntN(6) {
	case 0:
		return first
	case 1:
		return "(" + first + " or " + part() + ") and " + part()
	case 2:
		return "(" + first + " or " + part() + ") but not " + part()
	case 3:
		return first + " but not " + part()
	default:
		return first + " or " + part() + " or " + part()
	}
}

func randomTuple(r *rand.Rand) *openfgav1.TupleKey {
	object := []string{"group", "folder", "doc", "folder", "doc"}[r.IntN(5)]
	relation := []string{"parent", "owner", "viewer", "editor", "auditor", "viewer"}[r.IntN(6)]
	if object == "group" {
		relation = "member"
	}
	user := []string{"user:%d", "user:%d", "group:%d#member", "folder:%d#viewer", "user:*"}[r.IntN(5)]
	if relation == "parent" {
		user = "folder:%d"
	}
	if strings.Contains(user, "%") {
		user = fmt.Sprintf(user, r.IntN(2))
	}
	key := tuple(fmt.Sprint(object, ":", r.IntN(2)), relation, user)
	if r.IntN(4) == 0 {
		key.Condition = &openfgav1.RelationshipCondition{Name: "high", Context: &structpb.Struct{}}
		if r.IntN(2) == 0 {
			key.Condition.Context.Fields = map[string]*structpb.Value{"level": structpb.NewNumberValue(float64(r.IntN(10)))}
		}
	}
	return key
}
