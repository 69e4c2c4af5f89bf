package checker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// checkAuthorizationModels looks at those whose Store is not there; the others are checked with it. Who came to a
// Store when it was all but gone may keep a record of what went with it, in case somebody brings that back.
func checkAuthorizationModels(ctx context.Context, w *World) error {
	ids, err := w.FGA.Stores(ctx)
	if err != nil {
		return err
	}
	there := slices.Concat(slices.Collect(maps.Values(ids))...)
	stores := map[string]bool{}
	for _, s := range w.Snapshot.All(workload.Stores()) {
		stores[s.GetName()] = true
	}
	var errs []error
	for _, m := range w.Snapshot.All(workload.AuthorizationModels()) {
		if m.GetDeletionTimestamp() != nil {
			errs = append(errs, fmt.Errorf("authorizationmodel %s is not gone", m.GetName()))
			continue
		}
		if stores[field(m, "spec", "storeRef", "name")] {
			continue
		}
		err := wantCondition(m, "Ready", false)
		if id := field(m, "status", "storeId"); id == "" || slices.Contains(there, id) {
			err = errors.Join(err, checkRecord(m, &declared{}))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("authorizationmodel %s, which has no Store: %w", m.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// wantMerged wants a module that lives to say so, if only of a generation whose tuples were others, and another
// to say of its present generation that it does not.
func wantMerged(m unstructured.Unstructured, valid bool) error {
	if valid && condition(m, "Merged").Status == metav1.ConditionTrue && field(m, "status", "modelDigest") != "" {
		return nil
	}
	return wantCondition(m, "Merged", valid)
}

func checkAuthorizationModel(m unstructured.Unstructured, d *declared) error {
	valid := d.broken[m.GetName()] == nil
	return errors.Join(
		wantMerged(m, valid), wantCondition(m, "Ready", valid && !d.invalid[m.GetName()]),
		checkRecord(m, d),
	)
}
