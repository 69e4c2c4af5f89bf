package modeltest

import (
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
)

// ModelDefinitions returns the definitions of a model as a map from key to text. Keys have the forms "type",
// "type#relation" and "condition NAME".
//
// The text of a relation is the sorted union of its terms, such as "[user:*] or [user] or viewer from parent".
func ModelDefinitions(model *openfgav1.AuthorizationModel) map[string]string {
	all := map[string]string{}
	for _, t := range model.GetTypeDefinitions() {
		all[t.GetType()] = "type " + t.GetType()
		maps.Copy(all, relationTexts(t))
	}
	for name, c := range model.GetConditions() {
		all["condition "+name] = c.GetExpression()
	}
	return all
}

// relationTexts returns the texts of a type's relations.
func relationTexts(t *openfgav1.TypeDefinition) map[string]string {
	all := map[string]string{}
	for name, rewrite := range t.GetRelations() {
		var direct []string
		for _, r := range t.GetMetadata().GetRelations()[name].GetDirectlyRelatedUserTypes() {
			direct = append(direct, restrictionText(r))
		}
		union := unionTerms(rewrite, direct)
		slices.Sort(union)
		all[t.GetType()+"#"+name] = strings.Join(slices.Compact(union), or)
	}
	return all
}

// or separates the terms in the text of a relation.
const or = " or "

// unionTerms returns the terms of a union. Each directly related type is a separate term.
func unionTerms(u *openfgav1.Userset, direct []string) []string {
	switch u.GetUserset().(type) {
	case *openfgav1.Userset_This:
		return direct
	case *openfgav1.Userset_Union:
		var all []string
		for _, child := range u.GetUnion().GetChild() {
			all = append(all, unionTerms(child, direct)...)
		}
		return all
	case *openfgav1.Userset_ComputedUserset:
		return []string{u.GetComputedUserset().GetRelation()}
	case *openfgav1.Userset_TupleToUserset:
		step := u.GetTupleToUserset()
		return []string{step.GetComputedUserset().GetRelation() + " from " + step.GetTupleset().GetRelation()}
	default: // Generated models have no intersections or exclusions.
		return []string{u.String()}
	}
}

// restrictionText returns the text of a type restriction, such as "[user:*]".
func restrictionText(r *openfgav1.RelationReference) string {
	text := r.GetType()
	switch {
	case r.GetRelation() != "":
		text += "#" + r.GetRelation()
	case r.GetWildcard() != nil:
		text += ":*"
	}
	if r.GetCondition() != "" {
		text += " with " + r.GetCondition()
	}
	return "[" + text + "]"
}
