package model

import (
	"maps"
	"slices"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
)

// kinds is a set of kinds of subject: "user", or "user:*" for all subjects of a type.
type kinds map[string]struct{}

// reachableKinds returns for every relation the kinds of subject that can have it by any way of the model. Existing tuples do
// not matter.
func reachableKinds(m *openfgav1.AuthorizationModel) map[name]kinds {
	r := reacher{types: map[string]*openfgav1.TypeDefinition{}, found: map[name]kinds{}}
	for _, t := range m.GetTypeDefinitions() {
		r.types[t.GetType()] = t
		for relation := range t.GetRelations() {
			r.found[name{typ: t.GetType(), rel: relation}] = kinds{}
		}
	}
	// Every round adds a kind, or is the last.
	for grown := true; grown; {
		grown = false
		for n, has := range r.found {
			for kind := range r.kindsOf(n, r.types[n.typ].GetRelations()[n.rel]) {
				if _, known := has[kind]; !known {
					has[kind], grown = struct{}{}, true
				}
			}
		}
	}
	return r.found
}

type reacher struct {
	types map[string]*openfgav1.TypeDefinition
	found map[name]kinds
}

// kindsOf returns the kinds that a rewrite of n admits, as far as they are found yet.
func (r *reacher) kindsOf(n name, rewrite *openfgav1.Userset) kinds {
	switch is := rewrite.GetUserset().(type) {
	case *openfgav1.Userset_This:
		return r.assignedKinds(n)
	case *openfgav1.Userset_ComputedUserset:
		return r.found[name{typ: n.typ, rel: is.ComputedUserset.GetRelation()}]
	case *openfgav1.Userset_TupleToUserset:
		all := kinds{}
		for _, target := range r.restrictionsOf(name{typ: n.typ, rel: is.TupleToUserset.GetTupleset().GetRelation()}) {
			maps.Copy(all, r.found[name{typ: target.GetType(), rel: is.TupleToUserset.GetComputedUserset().GetRelation()}])
		}
		return all
	case *openfgav1.Userset_Union:
		all := kinds{}
		for _, child := range is.Union.GetChild() {
			maps.Copy(all, r.kindsOf(n, child))
		}
		return all
	case *openfgav1.Userset_Intersection:
		return r.commonKinds(n, is.Intersection.GetChild())
	case *openfgav1.Userset_Difference:
		return r.kindsOf(n, is.Difference.GetBase())
	}
	return nil
}

// commonKinds returns the kinds that all children admit. The kind of all subjects of a type includes each single subject.
func (r *reacher) commonKinds(n name, children []*openfgav1.Userset) kinds {
	all := kinds{}
	for i, child := range children {
		now := maps.Clone(r.kindsOf(n, child))
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

func (r *reacher) assignedKinds(n name) kinds {
	all := kinds{}
	for _, target := range r.restrictionsOf(n) {
		switch {
		case target.GetRelation() != "":
			maps.Copy(all, r.found[name{typ: target.GetType(), rel: target.GetRelation()}])
		case target.GetWildcard() != nil:
			all[target.GetType()+everybody] = struct{}{}
		default:
			all[target.GetType()] = struct{}{}
		}
	}
	return all
}

func (r *reacher) restrictionsOf(n name) []*openfgav1.RelationReference {
	return r.types[n.typ].GetMetadata().GetRelations()[n.rel].GetDirectlyRelatedUserTypes()
}

// missingIn lists the kinds of k that are missing in other, sorted.
func (k kinds) missingIn(other kinds) []string {
	var list []string
	for kind := range k {
		if _, both := other[kind]; !both {
			list = append(list, kind)
		}
	}
	slices.Sort(list)
	return list
}
