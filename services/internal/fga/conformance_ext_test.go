package fga_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/entail-dev/entail/services/internal/devserver/embedded"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
)

const model = `model
  schema 1.1
type user
type group
  relations
    define member: [user, group#member]
type document
  relations
    define viewer: [user, user:*, group#member, user with in_office, user with at_level]
condition in_office(place: string) {
  place == "office"
}
condition at_level(level: int, minimum: int) {
  level >= minimum
}
`

// unknown is a valid ID without an object.
const unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

// storeWithModel returns the ID of a new store with the model.
func storeWithModel(t *testing.T, client *fga.Client) string {
	t.Helper()
	id, err := client.CreateStore(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.WriteModel(t.Context(), id, parse(t, model)); err != nil {
		t.Fatal(err)
	}
	return id
}

func parse(t *testing.T, dsl string) *openfgav1.AuthorizationModel {
	t.Helper()
	m, err := transformer.TransformDSLToProto(dsl)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func viewer(object, user string) *openfgav1.TupleKey {
	return &openfgav1.TupleKey{Object: object, Relation: "viewer", User: user}
}

func viewers(n int) []*openfgav1.TupleKey {
	tuples := make([]*openfgav1.TupleKey, n)
	for i := range tuples {
		tuples[i] = viewer(fmt.Sprintf("document:%d", i), "user:anne")
	}
	return tuples
}

func under(t *testing.T, tuple *openfgav1.TupleKey, condition string, values map[string]any) *openfgav1.TupleKey {
	t.Helper()
	c := &openfgav1.RelationshipCondition{Name: condition}
	if values != nil {
		var err error
		if c.Context, err = structpb.NewStruct(values); err != nil {
			t.Fatal(err)
		}
	}
	return &openfgav1.TupleKey{Object: tuple.GetObject(), Relation: tuple.GetRelation(), User: tuple.GetUser(), Condition: c}
}

// sortedTuples returns the tuples of a store as sorted text.
func sortedTuples(t *testing.T, client *fga.Client, store string) []string {
	t.Helper()
	var all []string
	for tuple, err := range client.ReadTuples(t.Context(), store) {
		if err != nil {
			t.Fatal(err)
		}
		k := tuple.GetKey()
		all = append(all, strings.TrimSpace(k.GetObject()+" "+k.GetRelation()+" "+k.GetUser()+" "+k.GetCondition().GetName()))
	}
	slices.Sort(all)
	return all
}

func mustWrite(t *testing.T, client *fga.Client, store string, add, remove []*openfgav1.TupleKey) {
	t.Helper()
	if err := client.Write(t.Context(), store, "", add, remove); err != nil {
		t.Fatal(err)
	}
}

func TestFindStoresReturnsAllPagesOldestFirst(t *testing.T) {
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		for i := range 120 {
			if _, err := client.CreateStore(t.Context(), fmt.Sprintf("other-%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		var made []string
		for range 130 {
			id, err := client.CreateStore(t.Context(), "wanted")
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, id)
		}
		found, err := client.FindStores(t.Context(), "wanted")
		if err != nil {
			t.Fatal(err)
		}
		ids := make([]string, len(found))
		for i, s := range found {
			ids[i] = s.ID
			if s.Name != "wanted" || s.CreatedAt.IsZero() {
				t.Errorf("store %d is %+v", i, s)
			}
		}
		if len(ids) != len(made) || ids[0] != made[0] {
			t.Errorf("found %d stores, the first is %s; want %d and %s", len(ids), ids[0], len(made), made[0])
		}
		if none, err := client.FindStores(t.Context(), "want"); err != nil || len(none) != 0 {
			t.Errorf("a prefix of the name finds %v, %v; want nothing", none, err)
		}
	})
}

func TestGetStoreReportsMissingStore(t *testing.T) {
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		store := storeWithModel(t, client)
		mustWrite(t, client, store, viewers(1), nil)
		for range 2 { // The second time the store is already deleted.
			if err := client.DeleteStore(t.Context(), store); err != nil {
				t.Fatal(err)
			}
		}
		if _, found, err := client.GetStore(t.Context(), store); found || err != nil {
			t.Errorf("GetStore of a deleted store: %v, %v; want not found", found, err)
		}
		// A deleted store still has its model and tuples. So callers must call GetStore.
		if m, err := client.ReadLatestModel(t.Context(), store); m == nil || err != nil {
			t.Errorf("LatestModel of a deleted store: %v, %v; want the model", m, err)
		}
		if got := sortedTuples(t, client, store); len(got) != 1 {
			t.Errorf("a deleted store holds %v; want the tuple", got)
		}
		mustWrite(t, client, store, viewers(2), nil)
	})
}

func TestUnknownStoreReturnsErrStoreNotFound(t *testing.T) {
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		ctx := t.Context()
		for what, call := range map[string]func() error{
			"ReadModel": func() error { _, err := client.ReadModel(ctx, unknown, unknown); return err },
			"Write":     func() error { return client.Write(ctx, unknown, unknown, viewers(1), nil) },
			"Check": func() error {
				_, err := client.Check(ctx, &openfgav1.CheckRequest{
					StoreId: unknown, TupleKey: &openfgav1.CheckRequestTupleKey{Object: "document:1", Relation: "viewer", User: "user:anne"},
				})
				return err
			},
		} {
			if err := call(); !errors.Is(err, fga.ErrStoreNotFound) || fault.IsUnavailable(err) {
				t.Errorf("%s: %v; want %v, counted", what, err, fga.ErrStoreNotFound)
			}
		}
		for _, id := range []string{unknown, "no-id", ""} {
			if _, found, err := client.GetStore(ctx, id); found || err != nil {
				t.Errorf("GetStore(%q): %v, %v; want not found", id, found, err)
			}
			if err := client.DeleteStore(ctx, id); err != nil {
				t.Errorf("DeleteStore(%q): %v; want done", id, err)
			}
		}
		for _, id := range []string{unknown, "no-id"} {
			if m, err := client.ReadLatestModel(ctx, id); m != nil || err != nil {
				t.Errorf("LatestModel(%q): %v, %v; want none", id, m, err)
			}
			if got := sortedTuples(t, client, id); len(got) != 0 {
				t.Errorf("%q holds %v; want nothing", id, got)
			}
		}
		if _, err := client.WriteModel(ctx, "no-id", parse(t, model)); !errors.Is(err, fga.ErrStoreNotFound) || errors.Is(err, fga.ErrInvalidModel) {
			t.Errorf("model of an absent store: got %v, want %v", err, fga.ErrStoreNotFound)
		}
		if err := client.Write(ctx, unknown, "", nil, viewers(1)); err != nil {
			t.Errorf("deleting from it: %v; want done", err)
		}
		if err := client.Write(ctx, "no-id", "", nil, viewers(1)); err != nil {
			t.Errorf("deletion in an absent store: got %v, want success", err)
		}
		if err := client.Write(ctx, "no-id", "", viewers(1), nil); !errors.Is(err, fga.ErrStoreNotFound) {
			t.Errorf("write to an absent store: got %v, want %v", err, fga.ErrStoreNotFound)
		}
	})
}

func TestRenameStoreIsUnsupported(t *testing.T) {
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		err := client.RenameStore(t.Context(), storeWithModel(t, client), "another")
		if !errors.Is(err, fga.ErrUnsupported) || fault.IsUnavailable(err) {
			t.Errorf("got %v; want %v", err, fga.ErrUnsupported)
		}
	})
}

func TestInvalidStoreNameDoesNotCallServer(t *testing.T) {
	client, err := fga.Dial(fga.Config{Target: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, name := range []string{"", "ab", strings.Repeat("x", 65), "a:b:c", "ünicode"} {
		_, createErr := client.CreateStore(t.Context(), name)
		_, findErr := client.FindStores(t.Context(), name)
		for _, err := range []error{createErr, findErr, client.RenameStore(t.Context(), unknown, name)} {
			if !errors.Is(err, fga.ErrInvalidName) || fault.IsUnavailable(err) {
				t.Errorf("%q: %v; want %v", name, err, fga.ErrInvalidName)
			}
		}
	}
}

func TestReadLatestModelReturnsLastWritten(t *testing.T) {
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		store := storeWithModel(t, client)
		first, err := client.ReadLatestModel(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		second, err := client.WriteModel(t.Context(), store, parse(t, model))
		if err != nil {
			t.Fatal(err)
		}
		latest, err := client.ReadLatestModel(t.Context(), store)
		if err != nil || latest.GetId() != second {
			t.Errorf("latest is %s, %v; want %s", latest.GetId(), err, second)
		}
		if again, err := client.ReadModel(t.Context(), store, first.GetId()); err != nil || again.GetId() != first.GetId() {
			t.Errorf("first is %s, %v; want %s", again.GetId(), err, first.GetId())
		}
		for _, id := range []string{unknown, "01J8", "yesterday's", ""} {
			if _, err := client.ReadModel(t.Context(), store, id); !errors.Is(err, fga.ErrModelNotFound) || errors.Is(err, fga.ErrStoreNotFound) {
				t.Errorf("unknown model %q: %v; want %v", id, err, fga.ErrModelNotFound)
			}
		}
		if err := client.Write(t.Context(), store, unknown, viewers(1), nil); !errors.Is(err, fga.ErrModelNotFound) {
			t.Errorf("write under unknown model: %v; want %v", err, fga.ErrModelNotFound)
		}
	})
}

func TestWriteModelRefusalIsTerminal(t *testing.T) {
	many := "model\n  schema 1.1\ntype user\n"
	for i := range 100 {
		many += fmt.Sprintf("type t%d\n", i)
	}
	undefined := parse(t, "model\n  schema 1.1\ntype user\ntype document\n  relations\n    define viewer: [group]\n")
	badModules := parse(t, many)
	for _, d := range badModules.GetTypeDefinitions() {
		d.Metadata = &openfgav1.Metadata{Module: "no:module"}
	}
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		store := storeWithModel(t, client)
		for name, m := range map[string]*openfgav1.AuthorizationModel{
			"undefined type": undefined,
			"101 types":      parse(t, many),
			"empty":          {SchemaVersion: "1.1"},
			"many faults":    badModules,
			"no schema":      {TypeDefinitions: undefined.GetTypeDefinitions()},
		} {
			_, err := client.WriteModel(t.Context(), store, m)
			if !errors.Is(err, fga.ErrInvalidModel) || fault.IsUnavailable(err) || len(err.Error()) > 2_000 {
				t.Errorf("%s: %.3000v; want a short %v", name, err, fga.ErrInvalidModel)
			}
		}
	})
}

func TestWriteModelOverMessageLimitIsTerminal(t *testing.T) {
	everyAPI(t, func(t *testing.T, over api) {
		m := parse(t, model)
		for i := range 100 {
			m.TypeDefinitions = append(m.TypeDefinitions, &openfgav1.TypeDefinition{
				Type: fmt.Sprintf("t%d", i), Metadata: &openfgav1.Metadata{SourceInfo: &openfgav1.SourceInfo{File: strings.Repeat("f", 10_000)}},
			})
		}
		client := over.dial(t, embedded.OpenFGAConfig{}, fga.Config{})
		_, err := client.WriteModel(t.Context(), storeWithModel(t, client), m)
		if err == nil || fault.IsUnavailable(err) || !strings.Contains(err.Error(), "larger than max") {
			t.Errorf("got %v; want a refusal that counts", err)
		}
	})
}

func TestWriteAddsAndRemovesTuples(t *testing.T) {
	anne, bob := viewer("document:1", "user:anne"), viewer("document:1", "user:bob")
	cases := map[string]struct {
		before, add, remove []*openfgav1.TupleKey
		want                int
	}{
		"nothing":                         {},
		"more than one call's worth":      {add: viewers(250), want: 250},
		"exactly one call's worth":        {add: viewers(100), want: 100},
		"101 deletes":                     {before: viewers(150), remove: viewers(101), want: 49},
		"duplicates in the input":         {add: slices.Concat(viewers(60), viewers(60), viewers(60)), want: 60},
		"duplicates among the deletes":    {before: viewers(60), remove: slices.Concat(viewers(60), viewers(60)), want: 0},
		"what is there already":           {before: viewers(101), add: viewers(101), want: 101},
		"deletes of what is not there":    {remove: viewers(101), want: 0},
		"a tuple in both stays":           {add: []*openfgav1.TupleKey{anne, bob}, remove: []*openfgav1.TupleKey{bob}, want: 2},
		"a tuple in both that was there":  {before: []*openfgav1.TupleKey{bob}, add: []*openfgav1.TupleKey{bob}, remove: []*openfgav1.TupleKey{bob}, want: 1},
		"usersets, wildcards, and groups": {add: []*openfgav1.TupleKey{viewer("document:1", "user:*"), viewer("document:1", "group:a#member")}, want: 2},
	}
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				store := storeWithModel(t, client)
				mustWrite(t, client, store, tc.before, nil)
				for range 2 { // A second call changes nothing.
					mustWrite(t, client, store, tc.add, tc.remove)
					if got := sortedTuples(t, client, store); len(got) != tc.want {
						t.Fatalf("the store holds %d tuples; want %d: %.500q", len(got), tc.want, got)
					}
				}
			})
		}
	})
}

func TestWriteReplacesTupleWithChangedCondition(t *testing.T) {
	plain := viewer("document:conditional", "user:anne")
	office := under(t, plain, "in_office", nil)
	level := func(minimum int) *openfgav1.TupleKey {
		return under(t, plain, "at_level", map[string]any{"minimum": minimum})
	}
	steps := []*openfgav1.TupleKey{plain, office, office, level(1), level(2), level(2), plain}
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		store := storeWithModel(t, client)
		others := viewers(50)
		mustWrite(t, client, store, others, nil)
		for i, step := range steps {
			mustWrite(t, client, store, append(slices.Clone(others), step), nil)
			got, found, err := client.ReadTuple(t.Context(), store, step)
			if err != nil || !found || !fga.EqualConditions(got.GetKey(), step) {
				t.Errorf("step %d: the store has %v, %v, %v; want %v", i, got, found, err, step)
			}
			if n := len(sortedTuples(t, client, store)); n != len(others)+1 {
				t.Errorf("step %d: the store holds %d tuples; want %d", i, n, len(others)+1)
			}
		}
	})
}

func TestWriteRefusesTwoConditionsForOneTuple(t *testing.T) {
	everyAPI(t, func(t *testing.T, over api) {
		plain := viewer("document:1", "user:anne")
		client := over.dial(t, embedded.OpenFGAConfig{}, fga.Config{})
		store := storeWithModel(t, client)
		err := client.Write(t.Context(), store, "", []*openfgav1.TupleKey{plain, under(t, plain, "in_office", nil)}, nil)
		if !errors.Is(err, fga.ErrInvalidTuple) || !strings.Contains(err.Error(), "document:1#viewer@user:anne") {
			t.Errorf("got %v; want %v that names the tuple", err, fga.ErrInvalidTuple)
		}
		if got := sortedTuples(t, client, store); len(got) != 0 {
			t.Errorf("the store holds %v; want nothing", got)
		}
	})
}

func TestWriteDoesNotWriteChunkWithRefusedTuple(t *testing.T) {
	cases := map[string]*openfgav1.TupleKey{
		"unknown type":      viewer("folder:1", "user:anne"),
		"unknown relation":  {Object: "document:1", Relation: "owner", User: "user:anne"},
		"unknown user type": viewer("document:1", "robot:1"),
		"malformed user":    viewer("document:1", "user:system:serviceaccount:a:b"),
		"no user":           viewer("document:1", ""),
		"malformed object":  viewer("document", "user:anne"),
		"unknown condition": under(t, viewer("document:1", "user:anne"), "at_night", nil),
		"implicit":          {Object: "group:1", Relation: "member", User: "group:1#member"},
		"too long":          viewer("document:"+strings.Repeat("x", 300), "user:anne"),
	}
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		store := storeWithModel(t, client)
		for name, bad := range cases {
			err := client.Write(t.Context(), store, "", append(viewers(10), bad), nil)
			if !errors.Is(err, fga.ErrInvalidTuple) || fault.IsUnavailable(err) {
				t.Errorf("%s: %v; want %v", name, err, fga.ErrInvalidTuple)
			}
		}
		if got := sortedTuples(t, client, store); len(got) != 0 {
			t.Errorf("the store holds %v; want nothing", got)
		}
	})
}

func TestReadTuplesStopsWithCaller(t *testing.T) {
	everyAPI(t, func(t *testing.T, over api) {
		client := over.dial(t, embedded.OpenFGAConfig{}, fga.Config{})
		store := storeWithModel(t, client)
		mustWrite(t, client, store, viewers(150), nil)
		seen := 0
		for range client.ReadTuples(t.Context(), store) {
			if seen++; seen == 120 {
				break
			}
		}
		if seen != 120 {
			t.Errorf("saw %d tuples; want 120", seen)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range client.ReadTuples(ctx, store) {
			if !errors.Is(err, context.Canceled) || !fault.IsUnavailable(err) {
				t.Errorf("got %v; want %v, which does not count", err, context.Canceled)
			}
		}
	})
}

func TestCheckListObjectsAndExpand(t *testing.T) {
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		store := storeWithModel(t, client)
		mustWrite(t, client, store, []*openfgav1.TupleKey{
			{Object: "group:a", Relation: "member", User: "user:anne"}, viewer("document:1", "group:a#member"),
		}, nil)
		check, err := client.Check(t.Context(), &openfgav1.CheckRequest{
			StoreId: store, TupleKey: &openfgav1.CheckRequestTupleKey{Object: "document:1", Relation: "viewer", User: "user:anne"},
		})
		if err != nil || !check.GetAllowed() {
			t.Errorf("Check: %v, %v; want allowed", check, err)
		}
		place, err := structpb.NewStruct(map[string]any{"place": "office"})
		if err != nil {
			t.Fatal(err)
		}
		check, err = client.Check(t.Context(), &openfgav1.CheckRequest{
			StoreId: store, TupleKey: &openfgav1.CheckRequestTupleKey{Object: "document:2", Relation: "viewer", User: "user:anne"},
			Context: place, Consistency: openfgav1.ConsistencyPreference_HIGHER_CONSISTENCY, Trace: true,
			ContextualTuples: &openfgav1.ContextualTupleKeys{TupleKeys: []*openfgav1.TupleKey{under(t, viewer("document:2", "user:anne"), "in_office", nil)}},
		})
		if err != nil || !check.GetAllowed() {
			t.Errorf("Check with contextual tuples: got %v, %v, want allowed", check, err)
		}
		list, err := client.ListObjects(t.Context(), &openfgav1.ListObjectsRequest{StoreId: store, Type: "document", Relation: "viewer", User: "user:anne"})
		if err != nil || !slices.Equal(list.GetObjects(), []string{"document:1"}) {
			t.Errorf("ListObjects: %v, %v; want document:1", list, err)
		}
		users, err := client.ListUsers(t.Context(), &openfgav1.ListUsersRequest{
			StoreId: store, Object: &openfgav1.Object{Type: "document", Id: "1"}, Relation: "viewer",
			UserFilters: []*openfgav1.UserTypeFilter{{Type: "user"}}, Context: place,
			ContextualTuples: []*openfgav1.TupleKey{{Object: "group:a", Relation: "member", User: "user:bob"}},
		})
		if err != nil || len(users.GetUsers()) != 2 {
			t.Errorf("ListUsers: got %v, %v, want anne and bob", users, err)
		}
		tree, err := client.Expand(t.Context(), &openfgav1.ExpandRequest{
			StoreId: store, TupleKey: &openfgav1.ExpandRequestTupleKey{Object: "document:1", Relation: "viewer"},
		})
		if err != nil || tree.GetTree().GetRoot().GetLeaf().GetUsers().GetUsers()[0] != "group:a#member" {
			t.Errorf("Expand: %v, %v; want the group", tree, err)
		}
	})
}
