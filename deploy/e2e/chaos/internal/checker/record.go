package checker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// checkRecords wants no record to be open: what a replica announced that it writes, and which another
// may have taken over, is followed by another status. That of an object which waits for its end, too.
func checkRecords(_ context.Context, w *World) error {
	var errs []error
	for _, o := range slices.Concat(w.Snapshot.All(workload.Stores()), w.Snapshot.All(workload.AuthorizationModels())) {
		if c := condition(o, "TuplesSynced"); c.Reason == "Syncing" && strings.HasPrefix(c.Message, "Tuples are being written") {
			errs = append(errs, fmt.Errorf("%s %s: %s", o.GetKind(), o.GetName(), c.Message))
		}
	}
	return errors.Join(errs...)
}
