package store

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

var (
	// errLives spares all OpenFGA stores of Stores that are gone: the API server has a Store of the name, whose they may be.
	errLives = errors.New("there is a Store of this name")
	// errForeign spares one: it may be another's.
	errForeign = errors.New("the OpenFGA store may be another's")
)

// confirmGone asks for a Store whose an OpenFGA store is, before that is deleted because one is gone. Whose another name it
// bears, it may be.
func (r *Reconciler) confirmGone(ctx context.Context, action plan.Action, in plan.Input, obs plan.Observed) error {
	switch {
	case action.Verb != plan.DeleteStore:
		return nil
	case obs.Found.Name != in.Key.Name:
		return errForeign
	}
	_, err := r.applier.kube.Get(ctx, kinds.Stores(), "", in.Key.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return r.confirmLeft(ctx, action.StoreID, in)
	case err != nil:
		return err
	}
	return errLives
}

// confirmOwn spares an OpenFGA store that bears the name of another Store, before it is deleted with the one that records it.
func (r *Reconciler) confirmOwn(ctx context.Context, action plan.Action, in plan.Input, obs plan.Observed) error {
	name := obs.Found.Name
	if action.Verb != plan.DeleteStore || obs.Found.ID != action.StoreID || name == in.Key.Name || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil
	}
	_, err := r.applier.kube.Get(ctx, kinds.Stores(), "", name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return errForeign
}

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
