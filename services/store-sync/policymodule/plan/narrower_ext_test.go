package plan_test

import (
	"strings"
	"testing"
)

const (
	giver = `resourceTypes:
  - {name: lefty, idPrefix: lefty}
  - {name: righty, idPrefix: righty, relationships: [{relation: beside, targetTypes: [{name: lefty}]}]}
  - {name: upper, idPrefix: upper, relationships: [{relation: owner, targetTypes: [{name: lefty}, {name: righty}]}]}
actions: [{name: see}]
actionBindings:
  - {actionName: see, typeName: lefty, conditions: [{roleBinding: {}}]}
  - {actionName: see, typeName: righty, conditions: [{roleBinding: {}}, {relationshipAction: {relation: beside, actionName: see}}]}
`
	taker = `actions: [{name: look}]
actionBindings: [{actionName: look, typeName: upper, conditions: [{relationshipAction: {relation: owner, actionName: see}}]}]
`
)

func TestDecideDocumentsNarrowerGrantDoesNotRemovePartsOfOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ was, is, finding string }{
		"fewer may own it":         {", {name: righty}]", "]", ""},
		"no role gives it":         {"[{roleBinding: {}}, {", "[{", ""},
		"nobody has it by another": {", {relationshipAction: {relation: beside, actionName: see}}]", "]", ""},
		"the action has gone":      {"see", "gaze", "E-UNKNOWN-ACTION"},
	} {
		w := newSimulatedStore(t)
		w.say("a/giver", giver)
		w.say("b/taker", taker)
		w.expectFindings(w.settle(), map[string]string{})
		w.say("a/giver", strings.ReplaceAll(giver, c.was, c.is))
		todo := w.settle()
		w.expectFindings(todo, map[string]string{"b/taker": c.finding})
		if w.stale("a/giver") {
			t.Errorf("%s: the edit is not live", name)
		}
	}
}
