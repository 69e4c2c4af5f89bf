package plan

import (
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// dsl is a model with everything that a tuple can go wrong about.
const dsl = `model
  schema 1.1
type user
type team
  relations
    define member: [user, team#member]
type folder
  relations
    define parent: [folder]
    define viewer: [user, user:*] or viewer from parent
type doc
  relations
    define parent: [folder]
    define owner: [user]
    define editor: [user with from_office, team#member with from_office]
    define viewer: [user, user:*, team#member, user with from_office] or owner or viewer from parent
    define reader: viewer
condition from_office(ip: ipaddress, floor: int) {
  ip.in_cidr("10.0.0.0/8") && floor > 1
}
`

func wireModel(tb testing.TB) *openfgav1.AuthorizationModel {
	tb.Helper()
	m, err := transformer.TransformDSLToProto(dsl)
	if err != nil {
		tb.Fatal(err)
	}
	m.Id = "model"
	return m
}

func testModel(tb testing.TB) *Model {
	tb.Helper()
	m, err := NewModel(wireModel(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func parseTuple(object, relation, user string) tuple.Tuple {
	return tuple.Tuple{ID: tuple.ID{Object: object, Relation: relation, User: user}}
}

func withRelation(t tuple.Tuple, condition, context string) tuple.Tuple {
	t.Condition, t.Context = condition, context
	return t
}

// Tuples that the model allows.
//
//nolint:gochecknoglobals // Fixtures that no test changes.
var (
	t1 = parseTuple("doc:1", "viewer", "user:1")
	t2 = parseTuple("doc:2", "viewer", "user:1")
	t3 = parseTuple("doc:3", "viewer", "user:1")
	// tx is of a type that the model lacks.
	tx = parseTuple("ship:1", "captain", "user:1")
)

// an owner that belongs to store S, of its first generation.
func owner(name string, declared ...tuple.Tuple) Owner {
	return Owner{
		Key: event.Key{Cluster: "local", GroupResource: event.GroupResource{Group: "g", Resource: "models"}, Name: name}, UID: name,
		Generation: 1, Created: time.Unix(int64(name[0]), 0), Declared: declared, TargetStoreID: "S", HasFinalizer: true, ModuleJudged: true, ModuleLive: true,
	}
}

// recorded makes o settled with these tuples in a store.
func (o Owner) recorded(store string, tuples ...tuple.Tuple) Owner {
	o.Record, o.StatusStoreID = TupleRecord{store, tuples}, store
	return o.with(ownerWithCondition(OwnerCondition{OK: true, Reason: Synced, Generation: 1}))
}
