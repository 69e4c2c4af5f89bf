package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
)

// definitionName identifies a definition of a module: a type (typ), a relation (typ and rel) or a condition (cond).
type definitionName struct{ typ, rel, cond string }

// String returns the name as messages show it.
func (n definitionName) String() string {
	switch {
	case n.cond != "":
		return "condition " + n.cond
	case n.rel != "":
		return fmt.Sprintf("relation %s of type %s", n.rel, n.typ)
	default:
		return "type " + n.typ
	}
}

func (n definitionName) compareName(o definitionName) int {
	return cmp.Or(cmp.Compare(n.typ, o.typ), cmp.Compare(n.rel, o.rel), cmp.Compare(n.cond, o.cond))
}

// relationDefinition is the content of a relation. It is empty for a type or a condition.
type relationDefinition struct {
	rewrite *openfgav1.Userset
	// types are the types that may be assigned directly.
	types []*openfgav1.RelationReference
}

// canBeTupleset reports whether the relation may follow `from`: it is assigned directly, and only to whole objects.
func (d relationDefinition) canBeTupleset() bool {
	return d.rewrite.GetThis() != nil && !slices.ContainsFunc(d.types, func(r *openfgav1.RelationReference) bool {
		return r.GetRelationOrWildcard() != nil
	})
}

// relationsOfType returns the relations of a type by name.
func relationsOfType(t *openfgav1.TypeDefinition) map[definitionName]relationDefinition {
	all := make(map[definitionName]relationDefinition, len(t.GetRelations()))
	for relation, rewrite := range t.GetRelations() {
		types := t.GetMetadata().GetRelations()[relation].GetDirectlyRelatedUserTypes()
		all[definitionName{typ: t.GetType(), rel: relation}] = relationDefinition{rewrite, types}
	}
	return all
}

// definitionNeed is a name that must be defined so that a relation, or an extension of a type, is valid.
type definitionNeed struct {
	// by is the definition with the need.
	by definitionName
	// what must be defined.
	what definitionName
	// from is set for a need of `rel from what`: then what must lead to a type with the relation from.
	from string
}

// needsOfRelation returns the names to which a relation refers, without duplicates.
func needsOfRelation(by definitionName, d relationDefinition) []definitionNeed {
	found := map[definitionNeed]bool{}
	for _, r := range d.types {
		found[definitionNeed{by: by, what: definitionName{typ: r.GetType()}}] = true
		if r.GetRelation() != "" {
			found[definitionNeed{by: by, what: definitionName{typ: r.GetType(), rel: r.GetRelation()}}] = true
		}
		if r.GetCondition() != "" {
			found[definitionNeed{by: by, what: definitionName{cond: r.GetCondition()}}] = true
		}
	}
	forEachRewrite(d.rewrite, func(node *openfgav1.Userset) {
		if c := node.GetComputedUserset(); c != nil {
			found[definitionNeed{by: by, what: definitionName{typ: by.typ, rel: c.GetRelation()}}] = true
		}
		if t := node.GetTupleToUserset(); t != nil {
			tupleset := definitionName{typ: by.typ, rel: t.GetTupleset().GetRelation()}
			found[definitionNeed{by: by, what: tupleset, from: t.GetComputedUserset().GetRelation()}] = true
		}
	})
	return slices.SortedFunc(maps.Keys(found), func(a, b definitionNeed) int {
		return cmp.Or(a.what.compareName(b.what), cmp.Compare(a.from, b.from))
	})
}

// forEachRewrite calls f for a rewrite and for every rewrite inside it.
func forEachRewrite(rewrite *openfgav1.Userset, f func(*openfgav1.Userset)) {
	if rewrite == nil {
		return
	}
	f(rewrite)
	for _, child := range childUsersets(rewrite) {
		forEachRewrite(child, f)
	}
}

// childUsersets returns the operands of a rewrite that combines others.
func childUsersets(rewrite *openfgav1.Userset) []*openfgav1.Userset {
	switch r := rewrite.GetUserset().(type) {
	case *openfgav1.Userset_Union:
		return r.Union.GetChild()
	case *openfgav1.Userset_Intersection:
		return r.Intersection.GetChild()
	case *openfgav1.Userset_Difference:
		return []*openfgav1.Userset{r.Difference.GetBase(), r.Difference.GetSubtract()}
	default:
		return nil
	}
}
