package model

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"
)

// Equal reports whether two models mean the same, so that neither needs to be written over the other.
//
// It ignores differences without effect on any answer or right: ids, names of source files and the order of types. It
// also ignores repeated operands, and the order of assignable types and of the operands of `or` and `and`. Names of
// modules count, because OpenFGA can grant rights to write by module and users see them. The schema version counts too.
// Expressions of conditions are compared as text.
func Equal(a, b *openfgav1.AuthorizationModel) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return proto.Equal(normalizeModel(a), normalizeModel(b))
}

// normalizeModel returns a model in a form that all models of the same meaning share.
func normalizeModel(m *openfgav1.AuthorizationModel) *openfgav1.AuthorizationModel {
	n := &openfgav1.AuthorizationModel{SchemaVersion: m.GetSchemaVersion(), Conditions: map[string]*openfgav1.Condition{}}
	for _, t := range m.GetTypeDefinitions() {
		n.TypeDefinitions = append(n.TypeDefinitions, normalizeType(t))
	}
	slices.SortStableFunc(n.GetTypeDefinitions(), func(a, b *openfgav1.TypeDefinition) int {
		return strings.Compare(a.GetType(), b.GetType())
	})
	for key, c := range m.GetConditions() {
		n.Conditions[key] = &openfgav1.Condition{
			Name:       c.GetName(),
			Expression: strings.TrimSpace(c.GetExpression()),
			Parameters: c.GetParameters(),
			Metadata:   &openfgav1.ConditionMetadata{Module: c.GetMetadata().GetModule()},
		}
	}
	return n
}

func normalizeType(t *openfgav1.TypeDefinition) *openfgav1.TypeDefinition {
	n := &openfgav1.TypeDefinition{
		Type:      t.GetType(),
		Relations: map[string]*openfgav1.Userset{},
		Metadata:  &openfgav1.Metadata{Module: t.GetMetadata().GetModule(), Relations: map[string]*openfgav1.RelationMetadata{}},
	}
	for relation, rewrite := range t.GetRelations() {
		types := slices.SortedFunc(slices.Values(t.GetMetadata().GetRelations()[relation].GetDirectlyRelatedUserTypes()), compareRelationReferences)
		n.Relations[relation] = normalizeRewrite(rewrite)
		n.Metadata.Relations[relation] = &openfgav1.RelationMetadata{
			DirectlyRelatedUserTypes: slices.CompactFunc(types, func(a, b *openfgav1.RelationReference) bool { return proto.Equal(a, b) }),
			Module:                   moduleOfRelation(t, relation),
		}
	}
	return n
}

func compareRelationReferences(a, b *openfgav1.RelationReference) int {
	return cmp.Or(
		cmp.Compare(a.GetType(), b.GetType()),
		cmp.Compare(a.GetRelation(), b.GetRelation()),
		cmp.Compare(a.GetCondition(), b.GetCondition()),
		bytes.Compare(marshalDeterministic(a), marshalDeterministic(b)),
	)
}

// normalizeRewrite flattens and sorts unions and intersections.
func normalizeRewrite(rewrite *openfgav1.Userset) *openfgav1.Userset {
	switch r := rewrite.GetUserset().(type) {
	case *openfgav1.Userset_Union:
		operands := normalizeOperands(r.Union.GetChild(), func(u *openfgav1.Userset) []*openfgav1.Userset { return u.GetUnion().GetChild() })
		if len(operands) == 1 {
			return operands[0]
		}
		return &openfgav1.Userset{Userset: &openfgav1.Userset_Union{Union: &openfgav1.Usersets{Child: operands}}}
	case *openfgav1.Userset_Intersection:
		operands := normalizeOperands(r.Intersection.GetChild(), func(u *openfgav1.Userset) []*openfgav1.Userset { return u.GetIntersection().GetChild() })
		if len(operands) == 1 {
			return operands[0]
		}
		return &openfgav1.Userset{Userset: &openfgav1.Userset_Intersection{Intersection: &openfgav1.Usersets{Child: operands}}}
	case *openfgav1.Userset_Difference:
		return &openfgav1.Userset{Userset: &openfgav1.Userset_Difference{Difference: &openfgav1.Difference{
			Base: normalizeRewrite(r.Difference.GetBase()), Subtract: normalizeRewrite(r.Difference.GetSubtract()),
		}}}
	default:
		return rewrite
	}
}

// normalizeOperands returns the operands of an operation in normal form, sorted, each once. An operand that is the same
// operation again is replaced by its own operands, which inner returns.
func normalizeOperands(operands []*openfgav1.Userset, inner func(*openfgav1.Userset) []*openfgav1.Userset) []*openfgav1.Userset {
	sorted := map[string]*openfgav1.Userset{}
	for _, operand := range operands {
		operand = normalizeRewrite(operand)
		same := inner(operand)
		if len(same) == 0 {
			same = []*openfgav1.Userset{operand}
		}
		for _, o := range same {
			sorted[string(marshalDeterministic(o))] = o
		}
	}
	all := make([]*openfgav1.Userset, 0, len(sorted))
	for _, key := range slices.Sorted(maps.Keys(sorted)) {
		all = append(all, sorted[key])
	}
	return all
}

// marshalDeterministic returns equal bytes for equal messages. It cannot fail for messages with valid UTF-8, which a model's always
// are.
func marshalDeterministic(m proto.Message) []byte {
	encoded, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	return encoded
}
