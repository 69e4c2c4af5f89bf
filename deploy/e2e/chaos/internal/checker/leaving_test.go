package checker

import (
	"testing"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// leaving marks the Store as being deleted. It returns functions that set fields of the Store and of its module.
func (r *calmWorld) leaving() (store, part func(value any, path ...string)) {
	r.t.Helper()
	s, p := r.get(workload.StoreResource(), "store-0"), r.get(workload.AuthorizationModelResource(), "part")
	going(s)
	return func(value any, path ...string) { r.set(s, value, path...) }, func(value any, path ...string) { r.set(p, value, path...) }
}

func TestDeletingStoreDoesNotCauseFalseViolation(t *testing.T) {
	two := []any{tuple("part:1", "viewer", "user:1"), tuple("part:2", "viewer", "user:1")}
	for name, change := range map[string]func(*calmWorld){
		"a tuple waits for a text that is not taken any more": func(r *calmWorld) {
			_, part := r.leaving()
			part(map[string]any{"storeUID": "", "generation": int64(2), "model": "module part\n"}, "status", "live")
			part(two, "spec", "tuples")
		},
		"a tuple waits for a text that was never said to be live": func(r *calmWorld) {
			_, part := r.leaving()
			part(map[string]any{"storeUID": "", "generation": int64(3), "model": partText}, "status", "live")
			part(two, "spec", "tuples")
			r.turn(r.get(workload.AuthorizationModelResource(), "part"), "Merged", "False")
		},
		"it never had tuples": func(r *calmWorld) {
			store, _ := r.leaving()
			store([]any{}, "status", "managedTuples")
			r.get(workload.StoreResource(), "store-0").SetFinalizers([]string{storeFinalizer})
			r.fga.tuples["id-0"] = r.fga.tuples["id-0"][2:]
		},
		"it never had a model": func(r *calmWorld) {
			store, _ := r.leaving()
			store("", "status", "authorizationModelId")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := atRest(t)
			if change(r); r.accusations() != nil {
				t.Error(r.accusations())
			}
		})
	}
}

func TestDeletingStoreMustHoldDeclaredTuples(t *testing.T) {
	accused(t, map[string]struct {
		fault func(*calmWorld)
		want  string
	}{
		"a tuple is missing": {
			func(r *calmWorld) {
				r.leaving()
				r.fga.tuples["id-0"] = r.fga.tuples["id-0"][1:]
			},
			"store store-0, which is being deleted: tuples: 1 missing (doc:1#editor@user:1)",
		},
		"a tuple was not taken away": {
			func(r *calmWorld) {
				store, _ := r.leaving()
				store([]any{tuple("doc:1", "editor", "user:1")}, "spec", "tuples")
			},
			"1 that nobody declares (doc:2#viewer@user:2)",
		},
		"a tuple was not given whose text is live": {
			func(r *calmWorld) {
				_, part := r.leaving()
				part(map[string]any{"storeUID": "", "generation": int64(2), "model": partText}, "status", "live")
				part([]any{tuple("part:1", "viewer", "user:1"), tuple("part:2", "viewer", "user:1")}, "spec", "tuples")
			},
			"tuples: 1 missing (part:2#viewer@user:1)",
		},
		"the record of a module has one more": {
			func(r *calmWorld) {
				_, part := r.leaving()
				part([]any{tuple("part:1", "viewer", "user:1"), tuple("part:2", "viewer", "user:1")}, "status", "managedTuples")
			},
			"the record: 0 missing, 1 that nobody declares (part:2#viewer@user:1)",
		},
		"its model is gone": {
			func(r *calmWorld) {
				r.leaving()
				r.fga.models["id-0"].Id = "model-9"
			},
			"there is no model model-0",
		},
	})
}
