package iam

import openfgav1 "github.com/openfga/api/proto/openfga/v1"

// typeBuilder builds a type definition.
type typeBuilder struct{ definition *openfgav1.TypeDefinition }

func newTypeBuilder(name string) typeBuilder {
	return typeBuilder{&openfgav1.TypeDefinition{
		Type: name, Relations: map[string]*openfgav1.Userset{},
		Metadata: &openfgav1.Metadata{Module: Module, Relations: map[string]*openfgav1.RelationMetadata{}},
	}}
}

// addDirectRelation adds a relation that tuples can assign to subjects.
func (b typeBuilder) addDirectRelation(relation string, subjects ...*openfgav1.RelationReference) {
	b.addComputedRelation(relation, &openfgav1.Userset{Userset: &openfgav1.Userset_This{This: &openfgav1.DirectUserset{}}})
	b.definition.Metadata.Relations[relation].DirectlyRelatedUserTypes = subjects
}

// addComputedRelation adds a relation that is computed from other relations.
func (b typeBuilder) addComputedRelation(relation string, rewrite *openfgav1.Userset) {
	b.definition.Relations[relation] = rewrite
	b.definition.Metadata.Relations[relation] = &openfgav1.RelationMetadata{}
}

func typeReference(typ string) *openfgav1.RelationReference {
	return &openfgav1.RelationReference{Type: typ}
}

func membersReference(typ string) *openfgav1.RelationReference {
	return &openfgav1.RelationReference{Type: typ, RelationOrWildcard: &openfgav1.RelationReference_Relation{Relation: memberRelation}}
}

func wildcardReference() *openfgav1.RelationReference {
	return &openfgav1.RelationReference{Type: UserType, RelationOrWildcard: &openfgav1.RelationReference_Wildcard{Wildcard: &openfgav1.Wildcard{}}}
}

func computedUserset(relation string) *openfgav1.Userset {
	return &openfgav1.Userset{Userset: &openfgav1.Userset_ComputedUserset{ComputedUserset: &openfgav1.ObjectRelation{Relation: relation}}}
}

// tupleToUserset returns the rewrite "relation from through".
func tupleToUserset(relation, through string) *openfgav1.Userset {
	return &openfgav1.Userset{Userset: &openfgav1.Userset_TupleToUserset{TupleToUserset: &openfgav1.TupleToUserset{
		Tupleset: &openfgav1.ObjectRelation{Relation: through}, ComputedUserset: &openfgav1.ObjectRelation{Relation: relation},
	}}}
}

func unionUserset(of ...*openfgav1.Userset) *openfgav1.Userset {
	return &openfgav1.Userset{Userset: &openfgav1.Userset_Union{Union: &openfgav1.Usersets{Child: of}}}
}

func intersectionUserset(of ...*openfgav1.Userset) *openfgav1.Userset {
	return &openfgav1.Userset{Userset: &openfgav1.Userset_Intersection{Intersection: &openfgav1.Usersets{Child: of}}}
}
