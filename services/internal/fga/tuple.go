package fga

import (
	"fmt"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// identity identifies a tuple. The condition is not part of it.
type identity struct{ object, relation, user string }

func (i identity) String() string { return i.object + "#" + i.relation + "@" + i.user }

func (i identity) tupleKey() *openfgav1.TupleKeyWithoutCondition {
	return &openfgav1.TupleKeyWithoutCondition{Object: i.object, Relation: i.relation, User: i.user}
}

func identityOf(t *openfgav1.TupleKey) identity {
	return identity{t.GetObject(), t.GetRelation(), t.GetUser()}
}

// EqualConditions reports whether two tuples have equal conditions. A missing context equals an empty one.
func EqualConditions(a, b *openfgav1.TupleKey) bool {
	return proto.Equal(storedCondition(a), storedCondition(b))
}

// storedCondition returns t's condition in the form that the server stores.
func storedCondition(t *openfgav1.TupleKey) *openfgav1.RelationshipCondition {
	c := t.GetCondition()
	switch {
	case c.GetName() == "":
		return nil
	case c.GetContext() == nil:
		return &openfgav1.RelationshipCondition{Name: c.GetName(), Context: &structpb.Struct{}}
	default:
		return c
	}
}

// tuples holds a list without duplicates.
type tuples struct {
	list       []*openfgav1.TupleKey
	byIdentity map[identity]*openfgav1.TupleKey
}

// uniqueTuples returns copies of the tuples without duplicates. Two conditions for one tuple are an error.
func uniqueTuples(add []*openfgav1.TupleKey) (tuples, error) {
	u := tuples{list: make([]*openfgav1.TupleKey, 0, len(add)), byIdentity: make(map[identity]*openfgav1.TupleKey, len(add))}
	for _, t := range add {
		id := identityOf(t)
		if earlier, ok := u.byIdentity[id]; ok {
			if !EqualConditions(earlier, t) {
				return tuples{}, fmt.Errorf("%w: %s is asked for with two conditions (%q and %q): keep one", ErrInvalidTuple, id,
					earlier.GetCondition().GetName(), t.GetCondition().GetName())
			}
			continue
		}
		u.byIdentity[id] = t
		u.list = append(u.list, &openfgav1.TupleKey{Object: id.object, Relation: id.relation, User: id.user, Condition: storedCondition(t)})
	}
	return u, nil
}

// keysWithout returns the tuples of remove that are not in u, without duplicates.
func (u tuples) keysWithout(remove []*openfgav1.TupleKey) []*openfgav1.TupleKeyWithoutCondition {
	var keys []*openfgav1.TupleKeyWithoutCondition
	seen := make(map[identity]struct{}, len(remove))
	for _, t := range remove {
		id := identityOf(t)
		_, again := seen[id]
		_, wanted := u.byIdentity[id]
		if seen[id] = struct{}{}; !again && !wanted {
			keys = append(keys, id.tupleKey())
		}
	}
	return keys
}
