package fga_test

import (
	"fmt"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/fga"
)

func TestReadRelationTuplesReturnsOneRelation(t *testing.T) {
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		store := storeWithModel(t, client)
		var tuples []*openfgav1.TupleKey
		for i := range 150 {
			tuples = append(tuples, viewer("document:1", fmt.Sprint("user:", i)))
		}
		mustWrite(t, client, store, append(tuples, viewer("document:2", "user:1")), nil)
		for name, test := range map[string]struct {
			user        string
			limit, want int
			more        bool
		}{
			"all":             {"", 1000, 150, false},
			"as many as held": {"", 150, 150, false},
			"a part":          {"", 120, 120, true},
			"one page":        {"", 100, 100, true},
			"one user":        {"user:7", 10, 1, false},
			"another user":    {"user:900", 10, 0, false},
		} {
			filter := &openfgav1.ReadRequestTupleKey{Object: "document:1", Relation: "viewer", User: test.user}
			got, more, err := client.ReadRelationTuples(t.Context(), store, filter, test.limit)
			if err != nil || len(got) != test.want || more != test.more {
				t.Errorf("%s: got %d tuples, %t, %v, want %d, %t", name, len(got), more, err, test.want, test.more)
			}
		}
	})
}
