package modeltest

import "testing"

// A document that was valid before the Store had a model keeps that text.
func TestReferenceKeepsDocumentThatWasValidWithoutModel(t *testing.T) {
	const text = "resourceTypes:\n- {name: box, idPrefix: idbox}\n"
	const mistake = text + "actionBindings:\n- {actionName: look, typeName: nothing, conditions: [{roleBinding: {}}]}\n"
	r := reference{texts: newReader(), before: newModel()}
	broken := World{Core: "typ", RolesType: true, Documents: []Document{{Name: "d0", Created: 1, Text: text}}}
	if err := r.checkState(broken, State{Live: map[string]string{"policydocument/d0": text}}); err != nil {
		t.Fatal(err)
	}
	repaired := World{Core: "module core\ntype role\n", RolesType: true, Documents: []Document{{Name: "d0", Created: 1, Text: mistake}}}
	if err := r.checkState(repaired, State{
		Definitions: map[string]string{"role": "type role", "box": "type box"},
		Owners:      map[string]string{"role": CoreName, "box": "policydocument/d0"},
		Live:        map[string]string{CoreName: repaired.Core, "policydocument/d0": text},
	}); err != nil {
		t.Error(err)
	}
}
