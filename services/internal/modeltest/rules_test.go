package modeltest

import (
	"slices"
	"testing"
)

// A document that was valid before the Store had a model keeps its last valid text.
func TestReferenceKeepsDocumentThatWasValidWithoutModel(t *testing.T) {
	const text = "resourceTypes:\n- {name: box, idPrefix: idbox}\n"
	const mistake = text + "actionBindings:\n- {actionName: look, typeName: nothing, conditions: [{roleBinding: {}}]}\n"
	r := referenceChecker{texts: newCachingParser(), before: newOwnedDefinitions()}
	broken := Declarations{Core: "typ", RolesType: true, Documents: []Document{{Name: "d0", Created: 1, Text: text}}}
	if err := r.checkState(broken, LiveState{Live: map[string]string{"policydocument/d0": text}}); err != nil {
		t.Fatal(err)
	}
	repaired := Declarations{Core: "module core\ntype role\n", RolesType: true, Documents: []Document{{Name: "d0", Created: 1, Text: mistake}}}
	if err := r.checkState(repaired, LiveState{
		Definitions: map[string]string{"role": "type role", "box": "type box"},
		Owners:      map[string]string{"role": CoreName, "box": "policydocument/d0"},
		Live:        map[string]string{CoreName: repaired.Core, "policydocument/d0": text},
	}); err != nil {
		t.Error(err)
	}
}

// A union in a last live text does not get a lost member back, even if another document defines the type.
func TestSharedNamesOmitLostMembers(t *testing.T) {
	const text = "resourceTypes:\n- {name: box, idPrefix: idbox}\n- {name: doc, idPrefix: iddoc}\nunions:\n- {name: places, resourceTypes: [{name: box}, {name: doc}]}\n"
	o := &objectClaims{name: "policydocument/d0", document: true, text: text + "actions: [{name: look}]\n", memory: lastLiveText{text: text}}
	s := &historyStep{texts: newCachingParser(), before: newOwnedDefinitions(), after: newOwnedDefinitions(), list: []*objectClaims{o}}
	s.before.setDefinitions(CoreName, map[string]string{"box": "type box"})
	s.before.setDefinitions(o.name, map[string]string{"doc": "type doc", "union places": "doc"})
	if got, want := s.sharedNamesWith(nil).unions["places"], []string{"doc"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A text cannot need a relation of a former twin if it owns the type that the twin declares, too: the relation goes
// with the type.
func TestReferenceDoesNotExpectTextThatNeedsRelationOfFormerTwin(t *testing.T) {
	o := &objectClaims{name: "authorizationmodel/m0", text: "new", now: map[string]string{"box": "type box", "user#watcher": "[box#viewer]"}}
	twin := &objectClaims{name: "authorizationmodel/m1", text: "old", last: map[string]string{"box": "type box", "box#viewer": "[user]"}}
	s := &historyStep{after: newOwnedDefinitions(), list: []*objectClaims{o, twin}, objects: map[string]*objectClaims{o.name: o, twin.name: twin}}
	s.after.setDefinitions(CoreName, map[string]string{"user": "type user"})
	s.after.setDefinitions(o.name, o.now)
	s.after.setDefinitions(twin.name, map[string]string{"box#viewer": "[user]"})
	if s.canBeLive(o, nil, s.after) {
		t.Error("got a text that can be live, want none")
	}
}

// A document refers only to relations of documents.
func TestReferenceDoesNotExpectDocumentThatNeedsRelationOfModule(t *testing.T) {
	const text = "actionBindings:\n- {actionName: look, typeName: shelf, conditions: [{relationshipAction: {relation: parent, actionName: look}}]}\n"
	for owner, want := range map[string]bool{"authorizationmodel/m0": false, "policydocument/d1": true} {
		o := &objectClaims{name: "policydocument/d2", document: true, text: text, now: map[string]string{"shelf#look": "look from parent"}}
		s := &historyStep{texts: newCachingParser(), after: newOwnedDefinitions(), list: []*objectClaims{o}, objects: map[string]*objectClaims{o.name: o}, role: "role#subject"}
		s.after.setDefinitions("policydocument/d0", map[string]string{"shelf": "type shelf", "box": "type box", "box#look": "[box]", "action look": "action"})
		s.after.setDefinitions(owner, map[string]string{"shelf#parent": "[box]"})
		if got := s.canBeLive(o, nil, s.after); got != want {
			t.Errorf("with the relation of %s: got %t, want %t", owner, got, want)
		}
	}
}
