package report_test

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func tupleKey(object string) *tuplev1.TupleKey {
	return &tuplev1.TupleKey{Object: object, Relation: "viewer", User: "user:1"}
}

func TestWriteUndeclaredTuplesListsFate(t *testing.T) {
	context, err := structpb.NewStruct(map[string]any{"b": 1, "a": "x"})
	if err != nil {
		t.Fatal(err)
	}
	m := &tuplev1.ListUndeclaredTuplesResponse{NextPageToken: "x", Tuples: []*tuplev1.UndeclaredTuple{
		{Key: tupleKey("doc:1"), WrittenAt: noon(0), Fate: tuplev1.Fate_FATE_UNMANAGED, Message: "Other software wrote it."},
		{
			Key: tupleKey("doc:2"), WrittenAt: noon(0), Fate: tuplev1.Fate_FATE_TO_BE_REMOVED, Message: "It is declared no more.",
			RecordedBy: []string{"Store/demo", "AuthorizationModel/m"}, Condition: &tuplev1.Condition{Name: "c", Context: context},
		},
	}}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteUndeclaredTuples(m) }), `
TUPLE                                     WRITTEN    IS              RECORDED BY                        WHY
doc:1#viewer@user:1                       10 s ago   unmanaged       -                                  Other software wrote it.
doc:2#viewer@user:1 if c{"a":"x","b":1}   10 s ago   to be removed   Store/demo, AuthorizationModel/m   It is declared no more.
There is more.
`)
	expectEqual(t, write(t, func(p report.Printer) { p.WriteUndeclaredTuples(&tuplev1.ListUndeclaredTuplesResponse{}) }), "Objects declare every tuple in the store.\n")
}

func TestWriteDeclaredTuplesListsOwners(t *testing.T) {
	m := &tuplev1.ListTuplesResponse{Tuples: []*tuplev1.Tuple{{
		Key: tupleKey("doc:1"), Condition: &tuplev1.Condition{Name: "c"}, Owners: []*tuplev1.Owner{
			{Kind: "Store", Name: "demo", State: tuplev1.State_STATE_LIVE},
			{Kind: "AuthorizationModel", Name: "m", State: tuplev1.State_STATE_INVALID, Message: "no such type"},
		},
	}}}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteDeclaredTuples(m) }), `
TUPLE                      DECLARED BY            IS        WHY
doc:1#viewer@user:1 if c   Store/demo             live      
doc:1#viewer@user:1 if c   AuthorizationModel/m   invalid   no such type
`)
	expectEqual(t, write(t, func(p report.Printer) { p.WriteDeclaredTuples(&tuplev1.ListTuplesResponse{}) }), "No such tuple is declared.\n")
}
