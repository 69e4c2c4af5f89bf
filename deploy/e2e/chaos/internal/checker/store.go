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

// declaredStore is the content of one OpenFGA store that the objects declare.
type declaredStore struct {
	model  *openfgav1.AuthorizationModel
	broken map[string]error
	// owners holds the valid tuples of each object that declares tuples in the store.
	owners map[string][]Tuple
	// invalid is true for owners that also declare invalid tuples.
	invalid map[string]bool
	tuples  map[string]bool
}

// newDeclaredStore returns the content that OpenFGA must hold for a Store.
func newDeclaredStore(s *ObjectSnapshot, store unstructured.Unstructured) (*declaredStore, error) {
	d, owners := &declaredStore{}, tupleOwnersOf(s, store)
	var modules []Module
	for _, m := range owners[1:] {
		modules = append(modules, Module{m.GetName(), textField(m, "spec", "model"), lastLiveText(m, store)})
	}
	var err error
	if d.model, d.broken, err = mergeModules(Module{Name: "core", Text: textField(store, "spec", "coreModule")}, modules); err != nil {
		return nil, fmt.Errorf("the objects make no model: %w", err)
	}
	return d, d.judgeTuples(owners, func(o unstructured.Unstructured) bool {
		return d.broken[o.GetName()] != nil && lastLiveText(o, store) != ""
	})
}

// tupleOwnersOf returns the objects that declare tuples in a Store: the Store first, then the models that refer to it.
func tupleOwnersOf(s *ObjectSnapshot, store unstructured.Unstructured) []unstructured.Unstructured {
	owners := []unstructured.Unstructured{store}
	for _, m := range s.UndeletedOfKind(workload.AuthorizationModelResource()) {
		if textField(m, "spec", "storeRef", "name") == store.GetName() {
			owners = append(owners, m)
		}
	}
	return owners
}

// judgeTuples determines the tuples of each owner that the model accepts. If waits is true for an owner, only its recorded
// tuples count.
func (d *declaredStore) judgeTuples(owners []unstructured.Unstructured, waits func(unstructured.Unstructured) bool) error {
	d.owners, d.invalid, d.tuples = map[string][]Tuple{}, map[string]bool{}, map[string]bool{}
	for _, o := range owners {
		waiting := waits(o)
		given, err := recordedTuples(o)
		if err != nil {
			return err
		}
		for _, t := range tuplesAtPath(o, "spec", "tuples") {
			if waiting && !slices.Contains(given, t) {
				continue // The text that adds this tuple is not live yet.
			}
			if !acceptsTuple(d.model, t) {
				d.invalid[o.GetName()] = true
				continue
			}
			d.owners[o.GetName()] = append(d.owners[o.GetName()], t)
			d.tuples[t.String()] = true
		}
	}
	return nil
}

// lastLiveText returns the text of an AuthorizationModel that was last live in the Store with this UID.
func lastLiveText(m, store unstructured.Unstructured) string {
	if textField(m, "status", "live", "storeUID") != string(store.GetUID()) {
		return ""
	}
	return textField(m, "status", "live", "model")
}

func tuplesAtPath(o unstructured.Unstructured, path ...string) []Tuple {
	list, _, _ := unstructured.NestedSlice(o.Object, path...)
	return parseTuples(list)
}

func parseTuples(list []any) []Tuple {
	tuples := make([]Tuple, 0, len(list))
	for _, item := range list {
		m, _ := item.(map[string]any)
		text := func(key string) string { s, _ := m[key].(string); return s }
		tuples = append(tuples, Tuple{text("object"), text("relation"), text("user")})
	}
	return tuples
}

// checkStores compares every Store with OpenFGA.
func checkStores(ctx context.Context, w *CheckedSystem) error {
	ids, err := w.FGA.StoreIDs(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, store := range w.Snapshot.ObjectsOfKind(workload.StoreResource()) {
		name := store.GetName()
		if n := len(ids[name]); n != 1 && (n != 0 || !isWithoutStore(store)) {
			errs = append(errs, fmt.Errorf("store %s: OpenFGA has %d stores of its name", name, len(ids[name])))
		}
		delete(ids, name)
		if store.GetDeletionTimestamp() != nil {
			if !isReferenced(w.Snapshot, name) {
				errs = append(errs, fmt.Errorf("store %s is not gone, though nothing refers to it", name))
			} else if err := checkDeletingStore(ctx, w, store); err != nil {
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
	return store.GetDeletionTimestamp() != nil && textField(store, "status", "storeId") == ""
}

// isReferenced reports whether an AuthorizationModel blocks the deletion of a Store.
func isReferenced(s *ObjectSnapshot, store string) bool {
	for _, m := range s.ObjectsOfKind(workload.AuthorizationModelResource()) {
		if textField(m, "spec", "storeRef", "name") == store {
			return true
		}
	}
	return false
}

func checkStore(ctx context.Context, w *CheckedSystem, store unstructured.Unstructured) error {
	d, err := newDeclaredStore(w.Snapshot, store)
	if err != nil {
		return err
	}
	id := textField(store, "status", "storeId")
	live, err := w.FGA.LatestModel(ctx, id)
	if err != nil {
		return err
	}
	written, wrong := live, error(nil)
	if store.GetName() == workload.IAMStore {
		written, wrong = d.addIAMTuples(w.Snapshot, live)
	}
	errs := []error{
		wrong, compareMaps("the live model", rewritesOf(written), rewritesOf(d.model)),
		checkTuples(ctx, w, id, d),
		requireFinalizers(store, storeFinalizer),
		checkTupleRecord(store, d), requireCondition(store, "Ready", !d.invalid[store.GetName()]),
	}
	if got := textField(store, "status", "authorizationModelId"); got != live.GetId() {
		errs = append(errs, fmt.Errorf("status says that model %s is live, and it is %s", got, live.GetId()))
	}
	for _, m := range w.Snapshot.UndeletedOfKind(workload.AuthorizationModelResource()) {
		if textField(m, "spec", "storeRef", "name") == store.GetName() {
			if err := checkAuthorizationModel(m, d); err != nil {
				errs = append(errs, fmt.Errorf("authorizationmodel %s: %w", m.GetName(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// checkTuples compares the tuples of a store with the declared ones.
func checkTuples(ctx context.Context, w *CheckedSystem, id string, d *declaredStore) error {
	found, err := w.FGA.ReadTuples(ctx, id)
	if err != nil {
		return err
	}
	held := map[string]bool{}
	for _, t := range found {
		held[t.String()] = true
	}
	return compareMaps("tuples", held, d.tuples)
}

// checkTupleRecord requires that an owner's record lists exactly its tuples in the store. An owner with tuples must have the
// finalizer that keeps it until they are gone.
func checkTupleRecord(owner unstructured.Unstructured, d *declaredStore) error {
	listed, err := recordedTuples(owner)
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
		return errors.Join(compareMaps("the record", has, want), requireFinalizers(owner, tuplesFinalizer))
	}
	return compareMaps("the record", has, want)
}
