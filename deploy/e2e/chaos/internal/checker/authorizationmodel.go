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

// checkAuthorizationModels checks the AuthorizationModels without a Store; checkStores covers the others. A model that
// was added while its Store was being deleted may keep a record of deleted tuples, in case the OpenFGA store is
// restored.
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

// wantMerged requires condition Merged. A valid module must have it True, perhaps for an earlier generation with other
// tuples. An invalid module must not have it True in its present generation.
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
