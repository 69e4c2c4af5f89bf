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
func TestVocabularyLeavesOutLostMembers(t *testing.T) {
	const text = "resourceTypes:\n- {name: box, idPrefix: idbox}\n- {name: doc, idPrefix: iddoc}\nunions:\n- {name: places, resourceTypes: [{name: box}, {name: doc}]}\n"
	o := &objectClaims{name: "policydocument/d0", document: true, text: text + "actions: [{name: look}]\n", memory: liveMemory{text: text}}
	s := &stateChange{texts: newCachingParser(), before: newOwnedDefinitions(), after: newOwnedDefinitions(), list: []*objectClaims{o}}
	s.before.setDefinitions(CoreName, map[string]string{"box": "type box"})
	s.before.setDefinitions(o.name, map[string]string{"doc": "type doc", "union places": "doc"})
	if got, want := s.vocabularyWith(nil).unions["places"], []string{"doc"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
