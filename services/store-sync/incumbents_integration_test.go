//go:build integration

package storesync_test

import (
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

const (
	boxPart = `
resourceTypes:
  - {name: org, idPrefix: idntorg}
  - {name: box, idPrefix: idntbox, relationships: [{relation: parent, targetTypes: [{name: org}]}]}
actions: [{name: x_get}]
actionBindings:
  - {actionName: x_get, typeName: org, conditions: [{roleBinding: {}}]}
  - {actionName: x_get, typeName: box, conditions: [{roleBinding: {}}`
	inherited = ", {relationshipAction: {relation: parent, actionName: x_get}}"
)

// newEnvWithLiveDocuments returns a bed with a Store in which a document, the module of roles and discovered modules
// are live.
func newEnvWithLiveDocuments(t *testing.T) *testEnv {
	t.Helper()
	b := newTestEnv(t)
	b.StartReflector()
	b.serve(ordinary("v1"), unprivileged)
	b.applyStore("demo", withAccounts)
	b.patch(`{"metadata":{"annotations":{"iapl.infratographer.com/roles":"crew#subject"}}}`)
	b.document("inc", boxPart+inherited+"]}")
	b.awaitDocument("inc", "Ready=True/Ready")
	b.awaitTypes("org", "box", "crew", "core_secret", "core_namespace")
	tuples := []*openfgav1.TupleKey{
		{Object: "crew:c", Relation: "subject", User: "user:ann"},
		{Object: "org:o", Relation: "x_get_role", User: "crew:c#subject"},
		{Object: "box:b", Relation: "parent", User: "org:o"},
	}
	if err := b.hand.Write(t.Context(), b.store("demo").Status.StoreID, "", tuples, nil); err != nil {
		t.Fatal(err)
	}
	b.AwaitNoCalls()
	return b
}

func TestRejectedTextKeepsAccessAndDoesNotStopRevocation(t *testing.T) {
	b := newEnvWithLiveDocuments(t)
	b.admitNewcomer()
	if !b.may("user:ann", "x_get", "box:b") {
		t.Fatal("ann may not get the box")
	}
	types := b.types()
	for name, text := range map[string]string{
		"mm":  "module mm\n\ntype org\n  relations\n    define v: [user]\n",
		"nm":  "module nm\n\ntype crew\n  relations\n    define subject: [user]\n    define x: [nope]\n",
		"wm":  "module wm\n\ntype crew\n  relations\n    define subject: [user, user:*]\n",
		"ds9": "module ds9\n\nextend type core_namespace\n  relations\n    define create_core_secrets: member\n",
		"dst": "module dst\n\ntype core_secret\n",
		"bad": "module bad\n\ntype org\n\ntype crew\n\ntype core_secret\n  relations\n    defin v: [user]\n",
	} {
		b.createAsNewcomer(name, text)
		b.awaitModule(name, "Merged=False/Rejected")
	}
	b.registerAsNewcomer("thief", "\nresourceTypes: [{name: core_secret, idPrefix: idntsec}]")
	b.awaitDocument("thief", "Valid=False/Invalid")
	b.AwaitNoCalls()
	b.awaitDocument("inc", "Valid=True/Valid", "Merged=True/Merged", "Ready=True/Ready")
	if got := b.types(); !slices.Equal(got, types) {
		t.Errorf("got types %v, want %v", got, types)
	}

	b.document("inc", boxPart+"]}")
	b.awaitDocument("inc", "Ready=True/Ready")
	if b.may("user:ann", "x_get", "box:b") || !b.may("user:ann", "x_get", "org:o") {
		t.Error("the revocation is not live, or took more")
	}

	b.document("unions", "\nunions: [{name: both, resourceTypes: [{name: org}, {name: box}]}]")
	b.awaitDocument("unions", "Merged=True/NothingToMerge", "Ready=True/Ready")

	b.applyStore("demo", func(s *corev1alpha1.StoreSpec) {
		s.CoreModule = strings.Replace(accounts, "type core_platform", "typ core_platform", 1)
	})
	b.await("demo", "ModelSynced=False/InvalidCore")
	b.applyModule("other", "demo", dsl("other"))
	b.awaitModule("other", "Merged=True/Merged")
	if got, want := b.types(), append([]string{"other"}, types...); len(got) != len(want) || !slices.Contains(got, "core_secret") {
		t.Errorf("got types %v, want %v", got, want)
	}
	b.Delete(kinds.AuthorizationModels(), "mm")
	b.awaitDocument("inc", "Ready=True/Ready")
}
