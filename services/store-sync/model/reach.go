package model

import (
	"maps"
	"slices"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
)

// subjectKinds is a set of kinds of subject: "user", or "user:*" for all subjects of a type.
type subjectKinds map[string]struct{}

// reachableSubjectKinds returns for every relation the kinds of subject that can have it by any way of the model. Existing tuples do
// not matter.
func reachableSubjectKinds(m *openfgav1.AuthorizationModel) map[definitionName]subjectKinds {
	r := subjectKindResolver{types: map[string]*openfgav1.TypeDefinition{}, found: map[definitionName]subjectKinds{}}
	for _, t := range m.GetTypeDefinitions() {
		r.types[t.GetType()] = t
		for relation := range t.GetRelations() {
			r.found[definitionName{typ: t.GetType(), rel: relation}] = subjectKinds{}
		}
	}
	// Every round adds a kind, or is the last.
	for grown := true; grown; {
		grown = false
		for n, has := range r.found {
			for kind := range r.kindsOfRewrite(n, r.types[n.typ].GetRelations()[n.rel]) {
				if _, known := has[kind]; !known {
					has[kind], grown = struct{}{}, true
				}
			}
		}
	}
	return r.found
}

type subjectKindResolver struct {
	types map[string]*openfgav1.TypeDefinition
	found map[definitionName]subjectKinds
}

// kindsOfRewrite returns the kinds that a rewrite of n admits, as far as they are found yet.
func (r *subjectKindResolver) kindsOfRewrite(n definitionName, rewrite *openfgav1.Userset) subjectKinds {
	switch is := rewrite.GetUserset().(type) {
	case *openfgav1.Userset_This:
		return r.assignableKinds(n)
	case *openfgav1.Userset_ComputedUserset:
		return r.found[definitionName{typ: n.typ, rel: is.ComputedUserset.GetRelation()}]
	case *openfgav1.Userset_TupleToUserset:
		all := subjectKinds{}
		for _, target := range r.typeRestrictionsOf(definitionName{typ: n.typ, rel: is.TupleToUserset.GetTupleset().GetRelation()}) {
			maps.Copy(all, r.found[definitionName{typ: target.GetType(), rel: is.TupleToUserset.GetComputedUserset().GetRelation()}])
		}
		return all
	case *openfgav1.Userset_Union:
		all := subjectKinds{}
		for _, child := range is.Union.GetChild() {
			maps.Copy(all, r.kindsOfRewrite(n, child))
		}
		return all
	case *openfgav1.Userset_Intersection:
		return r.intersectKinds(n, is.Intersection.GetChild())
	case *openfgav1.Userset_Difference:
		return r.kindsOfRewrite(n, is.Difference.GetBase())
	}
	return nil
}

// intersectKinds returns the kinds that all children admit. The kind of all subjects of a type includes each single subject.
func (r *subjectKindResolver) intersectKinds(n definitionName, children []*openfgav1.Userset) subjectKinds {
	all := subjectKinds{}
	for i, child := range children {
		now := maps.Clone(r.kindsOfRewrite(n, child))
		for kind := range now {
			if base := kind[:max(0, len(kind)-len(everybody))]; base+everybody == kind {
				now[base] = struct{}{}
			}
		}
		if i == 0 {
			all = now
			continue
		}
		maps.DeleteFunc(all, func(kind string, _ struct{}) bool { _, in := now[kind]; return !in })
	}
	return all
}

// everybody is the suffix of the kind of all subjects of a type.
const everybody = ":*"

func (r *subjectKindResolver) assignableKinds(n definitionName) subjectKinds {
	all := subjectKinds{}
	for _, target := range r.typeRestrictionsOf(n) {
		switch {
		case target.GetRelation() != "":
			maps.Copy(all, r.found[definitionName{typ: target.GetType(), rel: target.GetRelation()}])
		case target.GetWildcard() != nil:
			all[target.GetType()+everybody] = struct{}{}
		default:
			all[target.GetType()] = struct{}{}
		}
	}
	return all
}

func (r *subjectKindResolver) typeRestrictionsOf(n definitionName) []*openfgav1.RelationReference {
	return r.types[n.typ].GetMetadata().GetRelations()[n.rel].GetDirectlyRelatedUserTypes()
}

// kindsMissingIn lists the kinds of k that are missing in other, sorted.
func (k subjectKinds) kindsMissingIn(other subjectKinds) []string {
	var list []string
	for kind := range k {
		if _, both := other[kind]; !both {
			list = append(list, kind)
		}
	}
	slices.Sort(list)
	return list
}
