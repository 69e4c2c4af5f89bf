package checker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// checkRecords requires that no record is open. After a replica records tuples that it will write, a second status must
// follow, even if another replica takes over or the object is being deleted.
func checkRecords(_ context.Context, w *CheckedSystem) error {
	var errs []error
	for _, o := range slices.Concat(w.Snapshot.ObjectsOfKind(workload.StoreResource()), w.Snapshot.ObjectsOfKind(workload.AuthorizationModelResource())) {
		if c := conditionOf(o, "TuplesSynced"); c.Reason == "Syncing" && strings.HasPrefix(c.Message, "Tuples are being written") {
			errs = append(errs, fmt.Errorf("%s %s: %s", o.GetKind(), o.GetName(), c.Message))
		}
	}
	return errors.Join(errs...)
}
