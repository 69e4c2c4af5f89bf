package checker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

const (
	storeFinalizer  = "core.platform-mesh.io/fga-store"
	tuplesFinalizer = "core.platform-mesh.io/fga-tuples"
)

// declared is the content of one OpenFGA store that the objects declare.
type declared struct {
	model  *openfgav1.AuthorizationModel
	broken map[string]error
	// owners holds the valid tuples of each object that declares tuples in the store.
	owners map[string][]Tuple
	// invalid is true for owners that also declare invalid tuples.
	invalid map[string]bool
	tuples  map[string]bool
}

// declare returns the content that OpenFGA must hold for a Store.
func declare(s *Snapshot, store unstructured.Unstructured) (*declared, error) {
	d, owners := &declared{}, ownersIn(s, store)
	var modules []Module
	for _, m := range owners[1:] {
		modules = append(modules, Module{m.GetName(), field(m, "spec", "model"), lastLive(m, store)})
	}
	var err error
	if d.model, d.broken, err = merge(Module{Name: "core", Text: field(store, "spec", "coreModule")}, modules); err != nil {
		return nil, fmt.Errorf("the objects make no model: %w", err)
	}
	return d, d.judge(owners, func(o unstructured.Unstructured) bool {
		return d.broken[o.GetName()] != nil && lastLive(o, store) != ""
	})
}

// ownersIn returns the objects that declare tuples in a Store: the Store first, then the models that refer to it.
func ownersIn(s *Snapshot, store unstructured.Unstructured) []unstructured.Unstructured {
	owners := []unstructured.Unstructured{store}
	for _, m := range s.Live(workload.AuthorizationModels()) {
		if field(m, "spec", "storeRef", "name") == store.GetName() {
			owners = append(owners, m)
		}
	}
	return owners
}

// judge determines the tuples of each owner that the model accepts. If waits is true for an owner, only its recorded
// tuples count.
func (d *declared) judge(owners []unstructured.Unstructured, waits func(unstructured.Unstructured) bool) error {
	d.owners, d.invalid, d.tuples = map[string][]Tuple{}, map[string]bool{}, map[string]bool{}
	for _, o := range owners {
		waiting := waits(o)
		given, err := recorded(o)
		if err != nil {
			return err
		}
		for _, t := range tuplesOf(o, "spec", "tuples") {
			if waiting && !slices.Contains(given, t) {
				continue // The text that adds this tuple is not live yet.
			}
			if !holds(d.model, t) {
				d.invalid[o.GetName()] = true
				continue
			}
			d.owners[o.GetName()] = append(d.owners[o.GetName()], t)
			d.tuples[t.String()] = true
		}
	}
	return nil
}

// lastLive returns the text of an AuthorizationModel that was last live in the Store with this UID.
func lastLive(m, store unstructured.Unstructured) string {
	if field(m, "status", "live", "storeUID") != string(store.GetUID()) {
		return ""
	}
	return field(m, "status", "live", "model")
}

func tuplesOf(o unstructured.Unstructured, path ...string) []Tuple {
	list, _, _ := unstructured.NestedSlice(o.Object, path...)
	return tuplesIn(list)
}

func tuplesIn(list []any) []Tuple {
	tuples := make([]Tuple, 0, len(list))
	for _, item := range list {
		m, _ := item.(map[string]any)
		text := func(key string) string { s, _ := m[key].(string); return s }
		tuples = append(tuples, Tuple{text("object"), text("relation"), text("user")})
	}
	return tuples
}

// checkStores compares every Store with OpenFGA.
func checkStores(ctx context.Context, w *World) error {
	ids, err := w.FGA.Stores(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, store := range w.Snapshot.All(workload.Stores()) {
		name := store.GetName()
		if n := len(ids[name]); n != 1 && (n != 0 || !isWithoutStore(store)) {
			errs = append(errs, fmt.Errorf("store %s: OpenFGA has %d stores of its name", name, len(ids[name])))
		}
		delete(ids, name)
		if store.GetDeletionTimestamp() != nil {
			if !isReferenced(w.Snapshot, name) {
				errs = append(errs, fmt.Errorf("store %s is not gone, though nothing refers to it", name))
			} else if err := checkLeaving(ctx, w, store); err != nil {
				errs = append(errs, fmt.Errorf("store %s, which is being deleted: %w", name, err))
			}
			continue
		}
		if err := checkStore(ctx, w, store); err != nil {
			errs = append(errs, fmt.Errorf("store %s: %w", name, err))
		}
	}
	for name := range ids {
		errs = append(errs, fmt.Errorf("OpenFGA has a store %q that no object asks for", name))
	}
	return errors.Join(errs...)
}

// isWithoutStore reports whether a Store is being deleted before an OpenFGA store was created for it, for example in an outage.
// None is created any more.
func isWithoutStore(store unstructured.Unstructured) bool {
	return store.GetDeletionTimestamp() != nil && field(store, "status", "storeId") == ""
}

// isReferenced reports whether an AuthorizationModel blocks the deletion of a Store.
func isReferenced(s *Snapshot, store string) bool {
	for _, m := range s.All(workload.AuthorizationModels()) {
		if field(m, "spec", "storeRef", "name") == store {
			return true
		}
	}
	return false
}

func checkStore(ctx context.Context, w *World, store unstructured.Unstructured) error {
	d, err := declare(w.Snapshot, store)
	if err != nil {
		return err
	}
	id := field(store, "status", "storeId")
	live, err := w.FGA.Model(ctx, id)
	if err != nil {
		return err
	}
	written, wrong := live, error(nil)
	if store.GetName() == workload.IAMStore {
		written, wrong = d.addAccess(w.Snapshot, live)
	}
	errs := []error{
		wrong, compareMaps("the live model", rewritesOf(written), rewritesOf(d.model)),
		checkTuples(ctx, w, id, d),
		wantFinalizers(store, storeFinalizer),
		checkRecord(store, d), wantCondition(store, "Ready", !d.invalid[store.GetName()]),
	}
	if got := field(store, "status", "authorizationModelId"); got != live.GetId() {
		errs = append(errs, fmt.Errorf("status says that model %s is live, and it is %s", got, live.GetId()))
	}
	for _, m := range w.Snapshot.Live(workload.AuthorizationModels()) {
		if field(m, "spec", "storeRef", "name") == store.GetName() {
			if err := checkAuthorizationModel(m, d); err != nil {
				errs = append(errs, fmt.Errorf("authorizationmodel %s: %w", m.GetName(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// checkTuples compares the tuples of a store with the declared ones.
func checkTuples(ctx context.Context, w *World, id string, d *declared) error {
	found, err := w.FGA.Tuples(ctx, id)
	if err != nil {
		return err
	}
	held := map[string]bool{}
	for _, t := range found {
		held[t.String()] = true
	}
	return compareMaps("tuples", held, d.tuples)
}

// checkRecord requires that an owner's record lists exactly its tuples in the store. An owner with tuples must have the
// finalizer that keeps it until they are gone.
func checkRecord(owner unstructured.Unstructured, d *declared) error {
	listed, err := recorded(owner)
	if err != nil {
		return err
	}
	has, want := map[string]bool{}, map[string]bool{}
	for _, t := range listed {
		has[t.String()] = true
	}
	for _, t := range d.owners[owner.GetName()] {
		want[t.String()] = true
	}
	if len(want) > 0 {
		return errors.Join(compareMaps("the record", has, want), wantFinalizers(owner, tuplesFinalizer))
	}
	return compareMaps("the record", has, want)
}
