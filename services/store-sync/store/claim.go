package store

import (
	"context"
	"errors"

	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// errForeign spares an OpenFGA store: it may be another's.
var errForeign = errors.New("the OpenFGA store may be another's")

// confirmLeft looks for a sign beside the word of the bus that an OpenFGA store was that of a Store which is gone, for nobody can
// be asked about that one: it was made here, it is empty, or it has the model that was recorded with it. The bus never told
// which models others have.
func (r *Reconciler) confirmLeft(ctx context.Context, id string, in plan.Input) error {
	left := in.Left(id)
	if _, made := r.applier.made.Get(id); made || len(left) == 0 {
		return nil
	}
	if latest, err := r.applier.fga.LatestModel(ctx, id); err != nil || latest == nil {
		return err
	}
	for _, former := range left {
		if _, err := r.applier.fga.ReadModel(ctx, id, former.Status.AuthorizationModelID); !refused(err) {
			return err
		}
	}
	return errForeign
}
