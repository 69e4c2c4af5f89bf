package decision

import (
	"context"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	"github.com/openfga/openfga/pkg/typesystem"
)

// tupleList is a [Reader] of a list. A relation with more than most tuples is cut off; 0 means no bound.
type tupleList struct {
	tuples []*openfgav1.TupleKey
	most   int
}

func (l tupleList) ReadRelation(_ context.Context, object, relation, user string) (found []*openfgav1.TupleKey, more bool, err error) {
	for _, t := range l.tuples {
		if t.GetObject() == object && t.GetRelation() == relation && (user == "" || t.GetUser() == user) {
			found = append(found, t)
		}
	}
	if l.most > 0 && len(found) > l.most {
		return found[:l.most], true, nil
	}
	return found, false, nil
}

// tuple returns a tuple without a condition.
func tuple(object, relation, user string) *openfgav1.TupleKey {
	return &openfgav1.TupleKey{Object: object, Relation: relation, User: user}
}

func parseModel(t testing.TB, dsl string) *openfgav1.AuthorizationModel {
	t.Helper()
	m, err := transformer.TransformDSLToProto(dsl)
	if err != nil {
		t.Fatalf("%v in\n%s", err, dsl)
	}
	return m
}

func typesOf(t testing.TB, m *openfgav1.AuthorizationModel) *typesystem.TypeSystem {
	t.Helper()
	types, err := typesystem.NewAndValidate(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// explain returns the tree of a question that must have one.
func explain(t testing.TB, types *typesystem.TypeSystem, reader Reader, q Question) (*Step, bool) {
	t.Helper()
	tree, truncated, err := Explain(t.Context(), types, reader, q)
	if err != nil {
		t.Fatal(err)
	}
	return tree, truncated
}
