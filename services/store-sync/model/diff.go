package model

import (
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"
)

// DefinitionChange describes how one definition differs between two models.
type DefinitionChange struct {
	Definition

	// Before and After are the text after the name in the DSL. They are empty for a type, or if the definition is
	// missing.
	Before, After string
	// Added and Removed are never both set. If neither is set, the definition or only its effect has changed.
	Added, Removed bool
	// Gained and Lost are kinds of subject, such as "user" or "user:*". Gained ones can have the relation only in the
	// new model, lost ones only in the old one. They describe possible ways, not tuples.
	Gained, Lost []string
}

// Diff lists the differences in meaning between two models, sorted by condition, type and relation. Nil stands for an
// empty model. Diff also lists a relation if only a change elsewhere affects its subjects. The error is that of [RenderDSL].
func Diff(before, after *openfgav1.AuthorizationModel) ([]DefinitionChange, error) {
	was, err := newComparedModel(before)
	if err != nil {
		return nil, err
	}
	is, err := newComparedModel(after)
	if err != nil {
		return nil, err
	}
	names := slices.SortedFunc(maps.Keys(was.definitions), definitionName.compareName)
	for _, n := range slices.SortedFunc(maps.Keys(is.definitions), definitionName.compareName) {
		if _, both := was.definitions[n]; !both {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, definitionName.compareName)
	var changes []DefinitionChange
	for _, n := range names {
		if c, differs := compareDefinition(n, was, is); differs {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

func compareDefinition(n definitionName, was, is *comparedModel) (DefinitionChange, bool) {
	old, had := was.definitions[n]
	now, has := is.definitions[n]
	c := DefinitionChange{Definition: now, Before: was.text[n], After: is.text[n], Added: !had, Removed: !has}
	if !has {
		c.Definition = old
	}
	c.Gained, c.Lost = is.reach[n].kindsMissingIn(was.reach[n]), was.reach[n].kindsMissingIn(is.reach[n])
	moved := had && has && old.Module != now.Module
	return c, c.Added || c.Removed || moved || c.Before != c.After || len(c.Gained)+len(c.Lost) > 0
}

// comparedModel is one of the two models.
type comparedModel struct {
	definitions map[definitionName]Definition
	text        map[definitionName]string
	reach       map[definitionName]subjectKinds
}

func newComparedModel(m *openfgav1.AuthorizationModel) (*comparedModel, error) {
	s := &comparedModel{definitions: map[definitionName]Definition{}, text: map[definitionName]string{}, reach: map[definitionName]subjectKinds{}}
	if len(m.GetTypeDefinitions()) == 0 {
		return s, nil
	}
	canonical := normalizeModel(m)
	canonical.Conditions = m.GetConditions()
	for _, d := range ListDefinitions(m) {
		s.definitions[definitionName{d.Type, d.Relation, d.Condition}] = d
	}
	text, err := RenderDSL(proto.CloneOf(canonical))
	if err != nil {
		return nil, err
	}
	s.text, s.reach = definitionTexts(text), reachableSubjectKinds(m)
	return s, nil
}

// definitionTexts splits a model's text, as [RenderDSL] writes it, into the texts of its relations and conditions.
func definitionTexts(text string) map[definitionName]string {
	texts := map[definitionName]string{}
	var at definitionName
	for line := range strings.SplitSeq(text, "\n") {
		keyword, rest := cutFirstWord(line)
		subject, after := cutFirstWord(rest)
		switch keyword {
		case "type":
			at = definitionName{typ: subject}
		case "define":
			at = definitionName{typ: at.typ, rel: subject}
			texts[at] = strings.TrimSpace(strings.TrimPrefix(after, ":"))
		case "condition":
			at = definitionName{cond: subject}
			texts[at] = strings.TrimSpace(after)
		default:
			if at.cond != "" && strings.TrimSpace(line) != "" {
				texts[at] += "\n" + strings.TrimSpace(line)
			}
		}
	}
	return texts
}
