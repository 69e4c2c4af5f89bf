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
func checkAuthorizationModels(ctx context.Context, w *CheckedSystem) error {
	ids, err := w.FGA.StoreIDs(ctx)
	if err != nil {
		return err
	}
	there := slices.Concat(slices.Collect(maps.Values(ids))...)
	stores := map[string]bool{}
	for _, s := range w.Snapshot.ObjectsOfKind(workload.StoreResource()) {
		stores[s.GetName()] = true
	}
	var errs []error
	for _, m := range w.Snapshot.ObjectsOfKind(workload.AuthorizationModelResource()) {
		if m.GetDeletionTimestamp() != nil {
			errs = append(errs, fmt.Errorf("authorizationmodel %s is not gone", m.GetName()))
			continue
		}
		if stores[textField(m, "spec", "storeRef", "name")] {
			continue
		}
		err := requireCondition(m, "Ready", false)
		if id := textField(m, "status", "storeId"); id == "" || slices.Contains(there, id) {
			err = errors.Join(err, checkTupleRecord(m, &declaredStore{}))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("authorizationmodel %s, which has no Store: %w", m.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// requireMerged requires condition Merged. A valid module must have it True, perhaps for an earlier generation with other
// tuples. An invalid module must not have it True in its present generation.
func requireMerged(m unstructured.Unstructured, valid bool) error {
	if valid && conditionOf(m, "Merged").Status == metav1.ConditionTrue && textField(m, "status", "modelDigest") != "" {
		return nil
	}
	return requireCondition(m, "Merged", valid)
}

func checkAuthorizationModel(m unstructured.Unstructured, d *declaredStore) error {
	valid := d.broken[m.GetName()] == nil
	return errors.Join(
		requireMerged(m, valid), requireCondition(m, "Ready", valid && !d.invalid[m.GetName()]),
		checkTupleRecord(m, d),
	)
}
