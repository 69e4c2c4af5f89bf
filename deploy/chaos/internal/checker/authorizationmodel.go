package checker

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/deploy/chaos/internal/workload"
)

// checkAuthorizationModels looks at those whose Store is not there; the others are checked with it.
func checkAuthorizationModels(_ context.Context, w *World) error {
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
		if err := errors.Join(wantCondition(m, "Ready", false), checkRecord(m, &declared{})); err != nil {
			errs = append(errs, fmt.Errorf("authorizationmodel %s, which has no Store: %w", m.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

func checkAuthorizationModel(m unstructured.Unstructured, d *declared) error {
	valid := d.broken[m.GetName()] == nil
	return errors.Join(
		wantCondition(m, "Merged", valid), wantCondition(m, "Ready", valid && !d.invalid[m.GetName()]),
		checkRecord(m, d),
	)
}
