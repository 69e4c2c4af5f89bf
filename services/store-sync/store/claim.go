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
	// errLives keeps all OpenFGA stores of a deleted Store: the API server has a Store with its name, which may own
	// them.
	errLives = errors.New("the Store exists")
	// errForeign keeps one OpenFGA store, which another owner may use.
	errForeign = errors.New("the OpenFGA store may be another's")
)

// verifyStoreGone checks that the Store is gone at the API server before its OpenFGA store is deleted. An OpenFGA store
// with another name may belong to another owner.
func (r *Reconciler) verifyStoreGone(ctx context.Context, action plan.Action, in plan.Input, obs plan.Observed) error {
	switch {
	case action.Verb != plan.DeleteStore:
		return nil
	case obs.Found.Name != in.Key.Name:
		return errForeign
	}
	_, err := r.applier.kube.Get(ctx, kinds.Stores(), "", in.Key.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return r.verifyFormerOwnership(ctx, action.StoreID, in)
	case err != nil:
		return err
	}
	return errLives
}

// verifyNoOtherOwner keeps an OpenFGA store with the name of another existing Store. It runs before that store is deleted
// together with the Store that records it.
func (r *Reconciler) verifyNoOtherOwner(ctx context.Context, action plan.Action, in plan.Input, obs plan.Observed) error {
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

// verifyFormerOwnership requires proof in OpenFGA that an OpenFGA store belonged to a deleted Store. The API
// server holds no deleted object. One of three is enough: this process created the OpenFGA store, it is empty,
// or it has the model that was recorded with it. NATS never carried the models of other owners.
func (r *Reconciler) verifyFormerOwnership(ctx context.Context, id string, in plan.Input) error {
	left := in.DeletedStoresRecording(id)
	if _, made := r.applier.made.Get(id); made || len(left) == 0 {
		return nil
	}
	if latest, err := r.applier.fga.ReadLatestModel(ctx, id); err != nil || latest == nil {
		return err
	}
	for _, former := range left {
		if _, err := r.applier.fga.ReadModel(ctx, id, former.Status.AuthorizationModelID); !isRefusal(err) {
			return err
		}
	}
	return errForeign
}
