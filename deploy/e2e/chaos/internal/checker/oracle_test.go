package checker

import (
	"errors"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

func TestMonitorReportsNothingForCorrectSystem(t *testing.T) {
	stores, parts, documents := workload.StoreResource(), workload.AuthorizationModelResource(), workload.PolicyDocumentResource()
	for name, change := range map[string]func(*calmWorld){
		"all": func(*calmWorld) {},
		"a Store that goes waits for what refers to it": func(r *calmWorld) {
			going(r.get(stores, "store-0"))
			r.turn(r.get(stores, "store-0"), "Ready", "False")
		},
		"a Store that goes gets no module of a definition any more": func(r *calmWorld) {
			going(r.get(stores, "store-0"))
			r.drop(parts, "gears-store-0")
		},
		"a document of a Store that is not there": func(r *calmWorld) {
			r.set(r.get(documents, "door"), "store-1", "spec", "storeRef", "name")
			r.turn(r.get(documents, "door"), "Ready", "False")
			r.drop(parts, "policydocument.default.door.x1")
			r.without("door")
		},
		"a module whose Store is not there, and which says so": func(r *calmWorld) {
			other := r.part("other", "store-1", partText)
			r.turn(other, "Ready", "False")
		},
		"a module whose Store went when it came, with tuples of that on record": func(r *calmWorld) {
			other := r.part("other", "store-1", partText, tuple("part:7", "viewer", "user:1"))
			r.set(other, "id-1", "status", "storeId")
			r.turn(other, "Ready", "False")
		},
		"a module that cannot be merged, and says so": func(r *calmWorld) {
			bad := r.part("bad", "store-0", "module bad\ntype bad\n  relations\n    define viewer: [nothing]\n")
			r.turn(bad, "Merged", "False")
			r.turn(bad, "Ready", "False")
		},
		"a tuple that the model cannot hold, and whose owner says so": func(r *calmWorld) {
			part := r.get(parts, "part")
			r.set(part, []any{tuple("part:1", "viewer", "user:1"), tuple("part:1", "owner", "user:1")}, "spec", "tuples")
			r.turn(part, "Ready", "False")
		},
		"a module whose tuples alone have changed since it was merged": func(r *calmWorld) {
			part := r.get(parts, "part")
			r.set(part, "digest", "status", "modelDigest")
			r.edit(part, "Merged", "observedGeneration", int64(2))
		},
		"a long record, which is packed":                 func(r *calmWorld) { r.pack("store-0") },
		"a binding to a role from which nothing follows": func(r *calmWorld) { r.bind("team-0", "other", "d", "alice") },
		"a binding of nobody":                            func(r *calmWorld) { r.bind("team-0", "other", "a") },
		"a binding in a namespace without rules":         func(r *calmWorld) { r.bind("team-1", "other", "a", "alice") },
	} {
		t.Run(name, func(t *testing.T) {
			r := atRest(t)
			if change(r); r.accusations() != nil {
				t.Error(r.accusations())
			}
		})
	}
}

// without removes a type from the live model.
func (r *calmWorld) without(typ string) {
	model := r.fga.models["id-0"]
	var left []*openfgav1.TypeDefinition
	for _, d := range model.GetTypeDefinitions() {
		if d.GetType() != typ {
			left = append(left, d)
		}
	}
	model.TypeDefinitions = left
}

func accused(t *testing.T, faults map[string]struct {
	fault func(*calmWorld)
	want  string
},
) {
	t.Helper()
	for name, test := range faults {
		t.Run(name, func(t *testing.T) {
			r := atRest(t)
			test.fault(r)
			if err := r.accusations(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it is accused of %v, want %q", err, test.want)
			}
		})
	}
}

func TestWrongStoreContentIsReported(t *testing.T) {
	stores := workload.StoreResource()
	accused(t, map[string]struct {
		fault func(*calmWorld)
		want  string
	}{
		"a tuple is missing": {
			func(r *calmWorld) { r.fga.tuples["id-0"] = r.fga.tuples["id-0"][1:] },
			"tuples: 1 missing (doc:1#editor@user:1), 0 that nobody declares",
		},
		"a tuple was not taken away": {
			func(r *calmWorld) {
				r.fga.tuples["id-0"] = append(r.fga.tuples["id-0"], Tuple{"doc:9", "editor", "user:9"})
			},
			"1 that nobody declares (doc:9#editor@user:9)",
		},
		"a tuple lies behind the first pages": {
			func(r *calmWorld) {
				for _, id := range []string{"2", "3", "4", "5"} {
					r.fga.tuples["id-0"] = append(r.fga.tuples["id-0"], Tuple{"doc:9", "editor", "user:" + id})
				}
			},
			"4 that nobody declares",
		},
		"the live model lacks a type": {func(r *calmWorld) { r.without("gear") }, "the live model: 1 missing (gear)"},
		"the live model is another than the status says": {
			func(r *calmWorld) { r.fga.models["id-0"].Id = "model-9" }, "status says that model model-0 is live, and it is model-9",
		},
		"there is no model":           {func(r *calmWorld) { delete(r.fga.models, "id-0") }, "the live model"},
		"there are two of its name":   {func(r *calmWorld) { r.fga.stores = append(r.fga.stores, &openfgav1.Store{Id: "id-1", Name: "store-0"}) }, "OpenFGA has 2 stores of its name"},
		"OpenFGA has none of it":      {func(r *calmWorld) { r.fga.stores = nil }, "OpenFGA has 0 stores of its name"},
		"OpenFGA has one of nobody's": {func(r *calmWorld) { r.fga.stores = append(r.fga.stores, &openfgav1.Store{Id: "id-1", Name: "left"}) }, `OpenFGA has a store "left" that no object asks for`},
		"one of nobody's is behind the first page": {
			func(r *calmWorld) {
				r.fga.stores = append(r.fga.stores, &openfgav1.Store{Id: "1", Name: "l"}, &openfgav1.Store{Id: "2", Name: "l"}, &openfgav1.Store{Id: "3", Name: "last"})
			},
			`OpenFGA has a store "last" that no object asks for`,
		},
		"OpenFGA does not answer":      {func(r *calmWorld) { r.fga.err = errors.New("away") }, "away"},
		"it is not ready":              {func(r *calmWorld) { r.turn(r.get(stores, "store-0"), "Ready", "False") }, `Ready is "False" at generation 3 (R: m), want true=true at generation 3`},
		"it was ready as it was once":  {func(r *calmWorld) { r.get(stores, "store-0").SetGeneration(4) }, "want true=true at generation 4"},
		"it says nothing of itself":    {func(r *calmWorld) { r.set(r.get(stores, "store-0"), []any{}, "status", "conditions") }, `Ready is "" at generation 0`},
		"it is not held":               {func(r *calmWorld) { r.get(stores, "store-0").SetFinalizers([]string{tuplesFinalizer}) }, "finalizers are [core.platform-mesh.io/fga-tuples]"},
		"it is not held by its tuples": {func(r *calmWorld) { r.get(stores, "store-0").SetFinalizers([]string{storeFinalizer}) }, "finalizers are [core.platform-mesh.io/fga-store]"},
		"its record lacks a tuple": {
			func(r *calmWorld) {
				r.set(r.get(stores, "store-0"), []any{tuple("doc:1", "editor", "user:1")}, "status", "managedTuples")
			},
			"the record: 1 missing (doc:2#viewer@user:2)",
		},
		"its packed record has one more": {
			func(r *calmWorld) { r.pack("store-0", tuple("doc:3", "viewer", "user:2")) }, "the record: 0 missing, 1 that nobody declares (doc:3#viewer@user:2)",
		},
		"its packed record cannot be read": {
			func(r *calmWorld) { r.set(r.get(stores, "store-0"), "bm9pc2U=", "status", "ledger", "data") }, "store-0: status.ledger: ",
		},
		"its record has one more": {
			func(r *calmWorld) {
				r.set(r.get(stores, "store-0"), []any{
					tuple("doc:1", "editor", "user:1"), tuple("doc:2", "viewer", "user:2"), tuple("doc:3", "viewer", "user:2"),
				}, "status", "managedTuples")
			},
			"the record: 0 missing, 1 that nobody declares (doc:3#viewer@user:2)",
		},
		"it does not go, and nothing holds it": {
			func(r *calmWorld) {
				going(r.get(stores, "store-0"))
				delete(r.objects, workload.AuthorizationModelResource())
			},
			"store store-0 is not gone, though nothing refers to it",
		},
		"its core module is none": {
			func(r *calmWorld) { r.set(r.get(stores, "store-0"), "module core\n", "spec", "coreModule") }, "the objects make no model: it defines no type",
		},
	})
}

func TestDeletingStoreNeedsWrittenTuplesOnly(t *testing.T) {
	for _, made := range []bool{true, false} {
		r := atRest(t)
		store := r.get(workload.StoreResource(), "store-0")
		going(store)
		if r.fga.stores = nil; !made {
			unstructured.RemoveNestedField(store.Object, "status")
		}
		if err := r.accusations(); (err != nil && strings.Contains(err.Error(), "0 stores of its name")) != made {
			t.Errorf("made %v, it is accused of %v", made, err)
		}
	}
}

func TestWrongGeneratedModuleIsReported(t *testing.T) {
	parts, documents, definitions := workload.AuthorizationModelResource(), workload.PolicyDocumentResource(), workload.DefinitionResource()
	const module = "policydocument.default.door.x1"
	accused(t, map[string]struct {
		fault func(*calmWorld)
		want  string
	}{
		"it is not merged": {func(r *calmWorld) { r.turn(r.get(parts, "part"), "Merged", "False") }, `authorizationmodel part: Merged is "False"`},
		"it cannot be merged, and says that it is": {
			func(r *calmWorld) {
				r.set(r.get(parts, "part"), "module part\ntype part\n  relations\n    define viewer: [nothing]\n", "spec", "model")
			},
			`authorizationmodel part: Merged is "True" at generation 3 (R: m), want true=false`,
		},
		"it was merged as another text": {
			func(r *calmWorld) { r.edit(r.get(parts, "part"), "Merged", "observedGeneration", int64(2)) },
			`authorizationmodel part: Merged is "True" at generation 2`,
		},
		"it declares what cannot be, and says that it is ready": {
			func(r *calmWorld) {
				r.set(r.get(parts, "part"), []any{tuple("part:1", "viewer", "user:1"), tuple("part:1", "owner", "user:1")}, "spec", "tuples")
			},
			`authorizationmodel part: Ready is "True"`,
		},
		"it lost its finalizer": {func(r *calmWorld) { r.get(parts, "part").SetFinalizers(nil) }, "authorizationmodel part: finalizers are []"},
		"it is not gone":        {func(r *calmWorld) { going(r.get(parts, "part")) }, "authorizationmodel part is not gone"},
		"it has no Store, and says that it is ready": {
			func(r *calmWorld) { r.part("other", "store-1", partText) }, "authorizationmodel other, which has no Store: Ready",
		},
		"it has no Store, and tuples on record": {
			func(r *calmWorld) {
				other := r.part("other", "store-1", partText, tuple("part:7", "viewer", "user:1"))
				r.set(other, "id-0", "status", "storeId")
				r.turn(other, "Ready", "False")
			},
			"authorizationmodel other, which has no Store: the record: 0 missing, 1 that nobody declares",
		},
		"a document has none": {func(r *calmWorld) { r.drop(parts, module); r.without("door") }, "policydocument door: there are 0 AuthorizationModels of it in store-0"},
		"a document has two":  {func(r *calmWorld) { r.part("policydocument.default.door.x2", "store-0", "") }, "policydocument door: there are 2 AuthorizationModels"},
		"a document's says another thing": {func(r *calmWorld) {
			r.set(r.get(parts, module), strings.Replace(doorText, "open", "shut", 1), "spec", "model")
		}, `its module lacks "define open:"`},
		"a document's is of another type": {func(r *calmWorld) {
			r.set(r.get(parts, module), strings.Replace(doorText, "type door", "type gate", 1), "spec", "model")
		}, `its module lacks "type door\n"`},
		"a document is gone":              {func(r *calmWorld) { r.drop(documents, "door") }, "authorizationmodel " + module + " is of no document"},
		"a document is not valid":         {func(r *calmWorld) { r.turn(r.get(documents, "door"), "Valid", "False") }, `policydocument door: Valid is "False"`},
		"a document is not ready":         {func(r *calmWorld) { r.turn(r.get(documents, "door"), "Ready", "Unknown") }, `policydocument door: Ready is "Unknown"`},
		"a definition has none":           {func(r *calmWorld) { r.drop(parts, "gears-store-0"); r.without("gear") }, "AuthorizationModels of definitions: 1 missing (gears-store-0)"},
		"a definition has lost its label": {func(r *calmWorld) { r.get(definitions, "gears."+workload.DefinitionGroup).SetLabels(nil) }, "1 that nobody declares (gears-store-0)"},
		"a definition without a label has one": {
			func(r *calmWorld) { r.part("gadgets-store-0", "store-0", "module gadgets\ntype gadget\n") }, "1 that nobody declares (gadgets-store-0)",
		},
	})
}

func TestWrongImpliedRoleIsReported(t *testing.T) {
	rules, bindings := workload.ImpliedRolesResource(), workload.RoleBindingResource()
	accused(t, map[string]struct {
		fault func(*calmWorld)
		want  string
	}{
		"a rule is not accepted": {func(r *calmWorld) { r.turn(r.get(rules, "one"), "Accepted", "False") }, `impliedroles team-0/one: Accepted is "False"`},
		"a rule is not in step":  {func(r *calmWorld) { r.turn(r.get(rules, "one"), "Synced", "False") }, `impliedroles team-0/one: Synced is "False"`},
		"a status lacks a role":  {func(r *calmWorld) { r.set(r.get(rules, "one"), []any{"b"}, "status", "inferences", "child_roles") }, "status says that a implies [b], want [b c]"},
		"a status is in no order": {
			func(r *calmWorld) { r.set(r.get(rules, "one"), []any{"c", "b"}, "status", "inferences", "child_roles") }, "status says that a implies [c b], want [b c]",
		},
		"a rule went, and its roles are there": {func(r *calmWorld) { r.drop(rules, "two") }, "RoleBindings that follow: 0 missing, 1 that nobody declares (team-0/source: c for alice,bob)"},
		"a binding is missing":                 {func(r *calmWorld) { r.drop(bindings, "source-c") }, "1 missing (team-0/source: c for alice,bob)"},
		"a binding is of fewer people": {
			func(r *calmWorld) {
				r.drop(bindings, "source-c")
				r.follow("team-0", "source-c", "source", "c", "alice")
			}, "1 missing (team-0/source: c for alice,bob), 1 that nobody declares (team-0/source: c for alice)",
		},
		"a binding is of another person": {
			func(r *calmWorld) {
				r.drop(bindings, "source-c")
				r.follow("team-0", "source-c", "source", "c", "alice", "carol")
			}, "1 that nobody declares (team-0/source: c for alice,carol)",
		},
		"a binding is there twice":        {func(r *calmWorld) { r.follow("team-0", "again", "source", "b", "alice", "bob") }, "1 otherwise (team-0/source: b for alice,bob is 2, want 1)"},
		"a binding outlives its source":   {func(r *calmWorld) { r.drop(bindings, "source") }, "2 that nobody declares"},
		"a binding is in another place":   {func(r *calmWorld) { r.follow("team-1", "stray", "source", "b", "alice") }, "1 that nobody declares (team-1/source: b for alice)"},
		"a binding has no source at all":  {func(r *calmWorld) { r.follow("team-0", "stray", "", "b", "alice").SetOwnerReferences(nil) }, "1 that nobody declares (team-0/: b for alice)"},
		"a binding follows one too early": {func(r *calmWorld) { r.bind("team-0", "late", "b", "dora") }, "1 missing (team-0/late: c for dora)"},
	})
}

func TestDifferenceNamesFirst(t *testing.T) {
	want := map[string]bool{}
	for _, name := range []string{"g", "f", "e", "d", "c", "b", "a"} {
		want[name] = true
	}
	err := compareMaps("letters", map[string]bool{"a": false}, want)
	if got := err.Error(); got != "letters: 6 missing (b; c; d; e; f; …), 0 that nobody declares, 1 otherwise (a is false, want true)" {
		t.Errorf("it reads %q", got)
	}
}
