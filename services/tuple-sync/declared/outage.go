package declared

import (
	"context"

	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
)

// WriteOutageStatuses writes to the objects of a key that OpenFGA is unavailable, unless they are in step. It changes no
// record, and thereby no plan.
func (r *Reconciler) WriteOutageStatuses(ctx context.Context, key Key, why setup.Outage) error {
	p := controller.NewRequest(r.applier.view, key, false)
	var errs []error
	for _, o := range r.state.liveObjectsOfKey(key) {
		u := plan.OutageStatusUpdate(&o.Owner, why.Message())
		if u == nil || o.unreadable != nil || o.Key.Cluster != r.home {
			continue
		}
		fields, err := o.statusFields(r.state.packs, u)
		if err != nil {
			return err
		}
		if err := why.WaitForStatusRateLimit(ctx); err != nil {
			return err
		}
		_, err = r.applier.status.ApplyOwnFields(ctx, p, o.kind, o.change, fields)
		errs = append(errs, err)
	}
	return fault.Join(errs...)
}
