package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/protobuf/proto"
)

// These constants bound the names that OpenFGA's API accepts, in characters.
const (
	longestType = 254
	longestName = 50
)

// collectClaimsAndNeeds fills in claims and needs of the unit. It returns an error text if the unit defines a name twice.
func (u *parsedModule) collectClaimsAndNeeds() string {
	u.claims = map[definitionName]relationDefinition{}
	var twice problemMessages
	add := func(n definitionName, d relationDefinition) {
		if _, known := u.claims[n]; known {
			twice.addProblem(fmt.Sprintf("%s%s is defined twice in the module: remove one", u.source.positionOfDefinition(n), n))
		}
		u.claims[n] = d
		u.needs = append(u.needs, needsOfRelation(n, d)...)
	}
	for _, t := range u.types {
		add(definitionName{typ: t.GetType()}, relationDefinition{})
	}
	for _, t := range u.extensions {
		n := definitionName{typ: t.GetType()}
		u.needs = append(u.needs, definitionNeed{by: n, what: n})
	}
	for _, t := range slices.Concat(u.types, u.extensions) {
		relations := relationsOfType(t)
		for _, n := range slices.SortedFunc(maps.Keys(relations), definitionName.compareName) {
			add(n, relations[n])
		}
	}
	for _, c := range slices.Sorted(maps.Keys(u.conditions)) {
		add(definitionName{cond: c}, relationDefinition{})
	}
	return twice.String()
}

// apiRefusalReason returns what OpenFGA's API would refuse in the unit. The API checks a write request in this way before
// validation.
func (u *parsedModule) apiRefusalReason(limits Limits) string {
	var all problemMessages
	if have := utf8.RuneCountInString(u.name); have > longestName {
		all.addProblem(fmt.Sprintf("the module's name has %d characters, of at most %d: shorten it", have, longestName))
	}
	for _, n := range slices.SortedFunc(maps.Keys(u.claims), definitionName.compareName) {
		if why := n.refusalReason(); why != "" {
			all.addProblem(fmt.Sprintf("%s%s: %s", u.source.positionOfDefinition(n), n, why))
		}
		if slices.ContainsFunc(u.claims[n].types, func(r *openfgav1.RelationReference) bool { return r.GetCondition() == "$expression" }) {
			all.addProblem(fmt.Sprintf("%s%s: inline expressions are an experiment in OpenFGA: give the condition a name", u.source.positionOfDefinition(n), n))
		}
	}
	for _, why := range u.exceededLimits(limits) {
		all.addProblem(why)
	}
	if len(all.shown) == 0 {
		u.addValidationErrors(&all)
	}
	return all.String()
}

// exceededLimits returns the limits of a whole model that the unit alone exceeds.
func (u *parsedModule) exceededLimits(limits Limits) []string {
	alone := &openfgav1.AuthorizationModel{TypeDefinitions: slices.Concat(u.types, u.extensions), Conditions: u.conditions}
	var all []string
	for _, count := range []struct {
		what      string
		have, max int
	}{
		{"types", len(u.types), limits.Types},
		{"conditions", len(u.conditions), maxConditions},
		{"bytes of protobuf", proto.Size(alone), limits.Bytes},
	} {
		if count.have > count.max {
			all = append(all, fmt.Sprintf("the module has %d %s, of at most %d in the whole model: shorten it",
				count.have, count.what, count.max))
		}
	}
	return all
}

// addValidationErrors adds the errors of the generated checks of OpenFGA's API, and of its compiler for the conditions. The server
// compiles conditions in random order, and no other module could repair them.
func (u *parsedModule) addValidationErrors(all *problemMessages) {
	for _, t := range slices.Concat(u.types, u.extensions) {
		if err := t.Validate(); err != nil {
			n := definitionName{typ: t.GetType()}
			all.addProblem(fmt.Sprintf("%sOpenFGA refuses %s: %v", u.source.positionOfDefinition(n), n, err))
		}
	}
	for _, c := range slices.Sorted(maps.Keys(u.conditions)) {
		n, condition := definitionName{cond: c}, u.conditions[c]
		err := condition.Validate()
		if err == nil {
			err = validateModel(&openfgav1.AuthorizationModel{
				SchemaVersion: typesystem.SchemaVersion1_2, Conditions: map[string]*openfgav1.Condition{c: condition},
			})
		}
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			all.addProblem(fmt.Sprintf("%sOpenFGA refuses %s: %s", u.source.positionOfDefinition(n), n, first))
		}
	}
}

// refusalReason returns why OpenFGA would refuse the name, or "".
func (n definitionName) refusalReason() string {
	for _, part := range []struct {
		text string
		max  int
	}{{n.typ, longestType}, {n.rel, longestName}, {n.cond, longestName}} {
		if part.text == "self" || part.text == "this" {
			return fmt.Sprintf("%q is a word that OpenFGA reserves: choose another name", part.text)
		}
		if have := utf8.RuneCountInString(part.text); have > part.max {
			return fmt.Sprintf("the name has %d characters, of at most %d: shorten it", have, part.max)
		}
	}
	return ""
}
