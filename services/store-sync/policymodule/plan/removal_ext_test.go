package plan_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestDecideDocumentsRemovalCutsDependents(t *testing.T) {
	t.Parallel()
	const unknown = "spec.resourceTypes[0].relationships[0].targetTypes[0]: E-UNKNOWN-TYPE"
	w := registered(t)
	w.say("a/tenant", strings.ReplaceAll(tenant, "tenant", "lodger"))
	w.expectFindings(w.settle(), map[string]string{"b/project": unknown, "d/owners": "spec.unions[0].resourceTypes[0]: E-UNKNOWN-TYPE"})
	want := whole()
	want["a/tenant"] = "lodger"
	w.expectLive(want)
	w.expectText("b/project", "resourceTypes: [{name: project, idPrefix: entrprj}]\n")
	w.expectText("d/owners", "unions: [{name: resourceowner, resourceTypes: [{name: project}]}]\n")
	w.say("a/tenant", tenant)
	w.expectFindings(w.settle(), nil)
	w.expectText("b/project", project)
	w.expectText("d/owners", owners)
}

func TestDecideDocumentsRefusesAdditionThatBreaksOthers(t *testing.T) {
	t.Parallel()
	w := newSimulatedStore(t)
	w.say("a/giver", giver)
	w.say("b/taker", taker)
	w.settle()
	more := strings.Replace(giver, "{name: righty}]", "{name: righty}, {name: more}]", 1)
	w.say("a/giver", strings.Replace(more, "  - {name: lefty, idPrefix: lefty}\n", "  - {name: lefty, idPrefix: lefty}\n  - {name: more, idPrefix: more}\n", 1))
	w.expectFindings(w.settle(), map[string]string{"a/giver": "spec: E-BREAKS-OTHERS other documents would be invalid with this addition; PolicyDocument b/taker: "})
	w.expectText("a/giver", giver)
	w.expectText("b/taker", taker)
}

const (
	orgs       = "resourceTypes: [{name: org, idPrefix: idntorg}]\nactions: [{name: x_get}]\n"
	orgBinding = "actionBindings: [{actionName: x_get, typeName: org, conditions: [{roleBinding: {}}]}]\n"
	boxes      = `resourceTypes: [{name: box, idPrefix: idntbox, relationships: [{relation: parent, targetTypes: [{name: org}]}]}]
actionBindings: [{actionName: x_get, typeName: box, conditions: [{roleBinding: {}}, {relationshipAction: {relation: parent, actionName: x_get}}]}]
`
)

func TestDecideDocumentsNewDocumentCannotBlockRemoval(t *testing.T) {
	t.Parallel()
	w := newSimulatedStore(t)
	w.say("s/a", orgs+orgBinding)
	w.settle()
	w.say("s/b", boxes)
	w.expectFindings(w.settle(), nil)
	w.say("s/a", orgs)
	w.expectFindings(w.settle(), map[string]string{"s/b": "spec.actionBindings[0].conditions[1].relationshipAction: E-ACTION-NOT-ON-TARGET"})
	w.expectText("s/a", orgs)
	w.expectText("s/b", strings.Replace(boxes, ", {relationshipAction: {relation: parent, actionName: x_get}}", "", 1))
}

func TestDecideDocumentsAcceptsNarrowerUnion(t *testing.T) {
	t.Parallel()
	union := `resourceTypes: [{name: org, idPrefix: idntorg}, {name: unit, idPrefix: idntuni}]
unions: [{name: all, resourceTypes: [{name: unit}, {name: org}]}]
actions: [{name: x_get}]
actionBindings: [{actionName: x_get, typeName: all, conditions: [{roleBinding: {}}]}]
`
	w := newSimulatedStore(t)
	w.say("s/a", union)
	w.say("s/b", boxes)
	w.expectFindings(w.settle(), nil)
	w.say("s/a", strings.Replace(union, ", {name: org}]}]", "]}]", 1))
	w.expectFindings(w.settle(), map[string]string{"s/b": "E-ACTION-NOT-ON-TARGET"})
	if w.stale("s/a") {
		t.Error("the narrower union is not live")
	}
	w.expectText("s/b", strings.Replace(boxes, ", {relationshipAction: {relation: parent, actionName: x_get}}", "", 1))
}

func TestDecideDocumentsKeepsUnionOfInvalidDocument(t *testing.T) {
	t.Parallel()
	w := registered(t)
	w.say("d/owners", strings.Replace(owners, "{name: tenant}", "{name: tenant}, {name: nope}", 1))
	w.say("c/lb", strings.Replace(lb, "  - {actionName: loadbalancer_get, typeName: resourceowner, conditions: [{roleBinding: {}}]}\n", "", 1))
	w.expectFindings(w.settle(), map[string]string{"c/lb": "E-ACTION-NOT-ON-TARGET", "d/owners": "E-UNKNOWN-TYPE"})
	w.expectText("d/owners", owners)
	w.say("c/lb", "resourceTypes: [{name: loadbalancer, idPrefix: loadbal, relationships: [{relation: owner, targetTypes: [{name: resourceowner}]}]}]\n")
	w.expectFindings(w.settle(), map[string]string{"d/owners": "E-UNKNOWN-TYPE"})
	if w.stale("c/lb") {
		t.Error("the revocation is not live")
	}
}

func TestDecideDocumentsDropsElementsMissingInInvalidText(t *testing.T) {
	t.Parallel()
	w := newSimulatedStore(t)
	w.say("s/a", orgs+orgBinding+"unions: [{name: all, resourceTypes: [{name: org}]}]\n")
	w.settle()
	w.say("s/a", "resourceTypes: [{name: org, idPrefix: WRONG}]\n")
	w.expectFindings(w.settle(), map[string]string{"s/a": "E-ID-PREFIX"})
	w.expectText("s/a", "resourceTypes: [{name: org, idPrefix: idntorg}]\n")
}

func TestDecideDocumentsRemovesDeletedDocument(t *testing.T) {
	t.Parallel()
	w := registered(t)
	delete(w.documents, "a/tenant")
	w.expectFindings(w.settle(), map[string]string{"b/project": "E-UNKNOWN-TYPE", "d/owners": "E-UNKNOWN-TYPE"})
	want := whole()
	delete(want, "a/tenant")
	w.expectLive(want)
	// Another document takes over the name.
	w.say("e/heir", tenant)
	w.expectFindings(w.settle(), nil)
	want["e/heir"] = "tenant"
	w.expectLive(want)
	w.expectText("b/project", project)
}

// The union has the present parent and one without the action, so the edit only adds a parent.
func TestDecideDocumentsRefusesParentUnionThatBreaksOthers(t *testing.T) {
	t.Parallel()
	const (
		places = "resourceTypes: [{name: box, idPrefix: idntbox}, {name: doc, idPrefix: idntdoc}]\n" +
			"unions: [{name: places, resourceTypes: [{name: box}, {name: doc}]}]\nactions: [{name: look}]\n" +
			"actionBindings: [{actionName: look, typeName: box, conditions: [{roleBinding: {}}]}]\n"
		shelf = "resourceTypes: [{name: shelf, idPrefix: idntshf, relationships: [{relation: parent, targetTypes: [{name: box}]}]}]\n"
		look  = "actionBindings: [{actionName: look, typeName: shelf, conditions: [{roleBinding: {}}, {relationshipAction: {relation: parent, actionName: look}}]}]\n"
	)
	w := newSimulatedStore(t)
	w.say("a/places", places)
	w.say("b/shelf", shelf)
	w.say("c/look", look)
	w.expectFindings(w.settle(), nil)
	w.say("b/shelf", strings.Replace(shelf, "[{name: box}]", "[{name: places}]", 1))
	w.expectFindings(w.settle(), map[string]string{"b/shelf": "spec: E-BREAKS-OTHERS other documents would be invalid with this addition; PolicyDocument c/look: "})
	w.expectText("b/shelf", shelf)
	w.expectText("c/look", look)
}

// Document b is refused in the first round, because it is tried together with a mistake in a. In the meantime the
// younger document c takes the name that b declares.
func TestDecideDocumentsPrefersOlderDocumentDelayedByOthersMistake(t *testing.T) {
	t.Parallel()
	const use = "actions: [{name: use}]\n"
	w := newSimulatedStore(t)
	w.say("s/a", "resourceTypes: [{name: org, idPrefix: idntorg}]\nunions: [{name: all, resourceTypes: [{name: org}]}]\n")
	w.settle()
	w.say("s/b", "resourceTypes: [{name: box, idPrefix: idntbox, relationships: [{relation: parent, targetTypes: [{name: org}]}]}]\n"+use)
	w.say("s/c", use)
	w.say("s/a", "unions: [{name: all, resourceTypes: [{name: org}]}]\n")
	w.expectFindings(w.settle(), map[string]string{"s/a": "E-UNKNOWN-TYPE", "s/c": "E-DUP-ACTION"})
}

// A refused edit binds the same action in another way: on a member of the union, or on a union with the type. The edit
// may also declare the union, or make it smaller.
func TestDecideDocumentsKeepsBindingThatRefusedEditChanges(t *testing.T) {
	t.Parallel()
	const (
		types   = "resourceTypes: [{name: org, idPrefix: idntorg}, {name: unit, idPrefix: idntuni}]\nunions: [{name: all, resourceTypes: [{name: unit}, {name: org}]}, {name: part, resourceTypes: [{name: unit}, {name: org}]}]\nactions: [{name: x_get}]\n"
		binding = "actionBindings: [{actionName: x_get, typeName: %s, conditions: [{roleBinding: {}}]}]\n"
	)
	for name, of := range map[string]struct{ live, edit, want string }{
		"to a member": {"all", "org", "org"}, "to a union": {"org", "all", "org"}, "as before": {"all", "all", "all"},
		"to a new union": {"org", "new", "org"}, "to a smaller union": {"all", "part", "org"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newSimulatedStore(t)
			w.core = []string{"taken"}
			w.say("s/a", types+fmt.Sprintf(binding, of.live))
			w.expectFindings(w.settle(), nil)
			w.say("s/a", strings.NewReplacer(
				"{name: unit, idPrefix: idntuni}", "{name: unit, idPrefix: idntuni}, {name: taken, idPrefix: idnttak}",
				"{name: part, resourceTypes: [{name: unit}, ", "{name: new, resourceTypes: [{name: org}]}, {name: part, resourceTypes: [",
			).Replace(types)+fmt.Sprintf(binding, of.edit))
			w.expectFindings(w.settle(), map[string]string{"s/a": "E-COLLISION"})
			w.expectText("s/a", types+fmt.Sprintf(binding, of.want))
		})
	}
}
