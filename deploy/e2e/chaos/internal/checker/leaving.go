package checker

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkLeaving compares the tuples of a Store that waits for what refers to it: its model stays as it is, and
// what is declared there comes and goes as before.
func checkLeaving(ctx context.Context, w *World, store unstructured.Unstructured) error {
	id, modelID := field(store, "status", "storeId"), field(store, "status", "authorizationModelId")
	if modelID == "" {
		return nil
	}
	model, err := w.FGA.ModelOf(ctx, id, modelID)
	if err != nil {
		return err
	}
	d, owners := &declared{model: model}, ownersIn(w.Snapshot, store)
	if err := d.judge(owners, func(o unstructured.Unstructured) bool { return outdated(o, store) || neverHeld(o) }); err != nil {
		return err
	}
	errs := []error{checkTuples(ctx, w, id, d)}
	for _, o := range owners {
		errs = append(errs, checkRecord(o, d))
	}
	return errors.Join(errs...)
}

// outdated reports whether an earlier text of an object is live in the place of its own, or its own was never said
// to be: nobody judges it any more.
func outdated(o, store unstructured.Unstructured) bool {
	text, live, judged := field(o, "spec", "model"), lastLive(o, store), "Merged"
	if o.GetName() == store.GetName() {
		text, live, judged = field(o, "spec", "coreModule"), field(o, "status", "live", "coreModule"), "ModelSynced"
	}
	c := condition(o, judged)
	generation, _, _ := unstructured.NestedInt64(o.Object, "status", "live", "generation")
	said := c.Status == metav1.ConditionTrue && c.ObservedGeneration == o.GetGeneration()
	return live != "" && (text != live || generation == o.GetGeneration() && !said)
}

// neverHeld reports whether an object that goes is not held by its tuples: it gets none any more.
func neverHeld(o unstructured.Unstructured) bool {
	return o.GetDeletionTimestamp() != nil && !slices.Contains(o.GetFinalizers(), tuplesFinalizer)
}
