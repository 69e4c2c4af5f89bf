package fga_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
)

func TestReadTypeTuplesReadsAnyObjectName(t *testing.T) {
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		store := storeWithModel(t, client)
		all := viewers(230)
		mustWrite(t, client, store, all, nil)
		mustWrite(t, client, store, nil, all[:110])
		mustWrite(t, client, store, all[:1], nil)
		held, err := client.ReadTypeTuples(t.Context(), store, "document", func(k *openfgav1.TupleKey) bool { return k.GetObject() != "document:111" })
		if err != nil || len(held) != 120 {
			t.Errorf("got %d tuples, want 120 (%v)", len(held), err)
		}
		for _, typ := range []string{"user", "nothing"} {
			if held, err := client.ReadTypeTuples(t.Context(), store, typ, func(*openfgav1.TupleKey) bool { return true }); err != nil || len(held) > 0 {
				t.Errorf("type %s: got %d tuples (%v)", typ, len(held), err)
			}
		}
	})
}

// An owner tuple with an unknown store name and cluster must also be found.
func TestReadStoreOwnerTuplesFindsEveryOwner(t *testing.T) {
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		store, err := client.CreateStore(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		if owners, err := client.ReadStoreOwnerTuples(t.Context(), store); err != nil || len(owners) > 0 {
			t.Errorf("of an empty one these are owners: %v (%v)", owners, err)
		}
		text := "model\n  schema 1.1\ntype cluster\ntype user\ntype store\n  relations\n    define owner: [cluster, user, cluster with odd]\n" +
			"    define member: [cluster]\ncondition odd(n: int) {\n  n == 1\n}\n"
		if _, err := client.WriteModel(t.Context(), store, parse(t, text)); err != nil {
			t.Fatal(err)
		}
		is := func(object, relation, user string) *openfgav1.TupleKey {
			return &openfgav1.TupleKey{Object: object, Relation: relation, User: user}
		}
		gone := is("store:gone", "owner", "cluster:1")
		mustWrite(t, client, store, []*openfgav1.TupleKey{
			is("store:iam", "owner", "cluster:1"), is("store:other", "owner", "cluster:2"), gone, is("store:a", "member", "cluster:2"),
			is("store:b", "owner", "user:2"), under(t, is("store:c", "owner", "cluster:3"), "odd", map[string]any{"n": 1}),
		}, nil)
		mustWrite(t, client, store, nil, []*openfgav1.TupleKey{gone})
		want := []iam.Tuple{iam.StoreOwnerTuple("iam", "1"), iam.StoreOwnerTuple("other", "2")}
		owners, err := client.ReadStoreOwnerTuples(t.Context(), store)
		if slices.SortFunc(owners, func(a, b iam.Tuple) int { return strings.Compare(a.Object, b.Object) }); err != nil || !slices.Equal(owners, want) {
			t.Errorf("owners are %v, want %v (%v)", owners, want, err)
		}
	})
}

func TestReadChangesAndReadObjectTuples(t *testing.T) {
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		store := storeWithModel(t, client)
		all := viewers(120)
		mustWrite(t, client, store, all, nil)
		var changes []*openfgav1.TupleChange
		token := ""
		for {
			page, next, err := client.ReadChanges(t.Context(), store, token, time.Now().Add(-time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			if changes, token = append(changes, page...), next; len(page) == 0 {
				break
			}
		}
		if len(changes) != len(all) || token == "" {
			t.Fatalf("%d changes, then %q", len(changes), token)
		}
		mustWrite(t, client, store, nil, all[:1])
		page, _, err := client.ReadChanges(t.Context(), store, token, time.Time{})
		if err != nil || len(page) != 1 || page[0].GetOperation() != openfgav1.TupleOperation_TUPLE_OPERATION_DELETE {
			t.Errorf("after that come %v, %v", page, err)
		}
		held, err := client.ReadObjectTuples(t.Context(), store, all[1].GetObject())
		want := 0
		for _, tuple := range all[1:] {
			if tuple.GetObject() == all[1].GetObject() {
				want++
			}
		}
		if err != nil || len(held) != want {
			t.Errorf("the object has %d tuples, want %d: %v", len(held), want, err)
		}
	})
}
