package fga_test

import (
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/fga"
)

func TestChangesFollowEachOtherAndAnObjectIsReadAlone(t *testing.T) {
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
		held, err := client.ReadObject(t.Context(), store, all[1].GetObject())
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
