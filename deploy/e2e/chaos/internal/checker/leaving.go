package checker

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkDeletingStore checks the tuples of a Store whose deletion waits for the models that refer to it. Its model stays
// unchanged, and its declared tuples are still added and removed.
func checkDeletingStore(ctx context.Context, w *CheckedSystem, store unstructured.Unstructured) error {
	id, modelID := textField(store, "status", "storeId"), textField(store, "status", "authorizationModelId")
	if modelID == "" {
		return nil
	}
	model, err := w.FGA.ReadModel(ctx, id, modelID)
	if err != nil {
		return err
	}
	d, owners := &declaredStore{model: model}, tupleOwnersOf(w.Snapshot, store)
	if err := d.judgeTuples(owners, func(o unstructured.Unstructured) bool { return hasOutdatedText(o, store) || isDeletingUnheld(o) }); err != nil {
		return err
	}
	errs := []error{checkTuples(ctx, w, id, d)}
	for _, o := range owners {
		errs = append(errs, checkTupleRecord(o, d))
	}
	return errors.Join(errs...)
}

// hasOutdatedText reports whether an earlier text of an object is live, or its present text was never reported as live. No
// service judges such a text any more.
func hasOutdatedText(o, store unstructured.Unstructured) bool {
	text, live, judged := textField(o, "spec", "model"), lastLiveText(o, store), "Merged"
	if o.GetName() == store.GetName() {
		text, live, judged = textField(o, "spec", "coreModule"), textField(o, "status", "live", "coreModule"), "ModelSynced"
	}
	c := conditionOf(o, judged)
	generation, _, _ := unstructured.NestedInt64(o.Object, "status", "live", "generation")
	said := c.Status == metav1.ConditionTrue && c.ObservedGeneration == o.GetGeneration()
	return live != "" && (text != live || generation == o.GetGeneration() && !said)
}

// isDeletingUnheld reports whether an object is being deleted and has no finalizer for its tuples. It gets no tuples any more.
func isDeletingUnheld(o unstructured.Unstructured) bool {
	return o.GetDeletionTimestamp() != nil && !slices.Contains(o.GetFinalizers(), tuplesFinalizer)
}
