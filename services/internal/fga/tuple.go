package fga

import (
	"fmt"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// tupleIdentity identifies a tuple. The condition is not part of the identity.
type tupleIdentity struct{ object, relation, user string }

func (i tupleIdentity) String() string { return i.object + "#" + i.relation + "@" + i.user }

func (i tupleIdentity) tupleKey() *openfgav1.TupleKeyWithoutCondition {
	return &openfgav1.TupleKeyWithoutCondition{Object: i.object, Relation: i.relation, User: i.user}
}

func tupleIdentityOf(t *openfgav1.TupleKey) tupleIdentity {
	return tupleIdentity{t.GetObject(), t.GetRelation(), t.GetUser()}
}

// EqualConditions reports whether two tuples have equal conditions. A missing context equals an empty one.
func EqualConditions(a, b *openfgav1.TupleKey) bool {
	return proto.Equal(normalizedCondition(a), normalizedCondition(b))
}

// normalizedCondition returns t's condition in the form that the server stores.
func normalizedCondition(t *openfgav1.TupleKey) *openfgav1.RelationshipCondition {
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

// tupleSet holds tuples without duplicates.
type tupleSet struct {
	list       []*openfgav1.TupleKey
	byIdentity map[tupleIdentity]*openfgav1.TupleKey
}

// newTupleSet returns copies of the tuples without duplicates. It returns an error if one tuple has two different
// conditions.
func newTupleSet(add []*openfgav1.TupleKey) (tupleSet, error) {
	u := tupleSet{list: make([]*openfgav1.TupleKey, 0, len(add)), byIdentity: make(map[tupleIdentity]*openfgav1.TupleKey, len(add))}
	for _, t := range add {
		id := tupleIdentityOf(t)
		if earlier, ok := u.byIdentity[id]; ok {
			if !EqualConditions(earlier, t) {
				return tupleSet{}, fmt.Errorf("%w: %s has two conditions (%q and %q): keep one", ErrInvalidTuple, id,
					earlier.GetCondition().GetName(), t.GetCondition().GetName())
			}
			continue
		}
		u.byIdentity[id] = t
		u.list = append(u.list, &openfgav1.TupleKey{Object: id.object, Relation: id.relation, User: id.user, Condition: normalizedCondition(t)})
	}
	return u, nil
}

// removableKeys returns the tuples of remove that are not in u, without duplicates.
func (u tupleSet) removableKeys(remove []*openfgav1.TupleKey) []*openfgav1.TupleKeyWithoutCondition {
	var keys []*openfgav1.TupleKeyWithoutCondition
	seen := make(map[tupleIdentity]struct{}, len(remove))
	for _, t := range remove {
		id := tupleIdentityOf(t)
		_, again := seen[id]
		_, wanted := u.byIdentity[id]
		if seen[id] = struct{}{}; !again && !wanted {
			keys = append(keys, id.tupleKey())
		}
	}
	return keys
}
