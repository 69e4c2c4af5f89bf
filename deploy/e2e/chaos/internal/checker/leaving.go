package checker

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkLeaving checks the tuples of a Store whose deletion waits for the models that refer to it. Its model stays
// unchanged, and its declared tuples are still added and removed.
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

// outdated reports whether an earlier text of an object is live, or its present text was never reported as live. No
// service judges such a text any more.
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

// neverHeld reports whether an object is being deleted and has no finalizer for its tuples. It gets no tuples any more.
func neverHeld(o unstructured.Unstructured) bool {
	return o.GetDeletionTimestamp() != nil && !slices.Contains(o.GetFinalizers(), tuplesFinalizer)
}
