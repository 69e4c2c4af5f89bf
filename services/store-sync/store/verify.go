package store

import (
	"context"
	"fmt"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// verifyAction compares the basis of an action with the API server if the action adopts or deletes an OpenFGA store, or
// removes a live module. All other actions follow from the informer alone.
func (r *Reconciler) verifyAction(ctx context.Context, action plan.Action, in plan.Input, obs plan.Observed) error {
	switch {
	case in.Store == nil:
		return r.verifyStoreGone(ctx, action, in, obs)
	case action.Verb == plan.DeleteStore:
		if err := r.verifyNoOtherOwner(ctx, action, in, obs); err != nil {
			return err
		}
		return r.verifier.Verify(ctx, expectedStore(in))
	case action.Verb == plan.Record && action.StoreID != obs.Created:
		if !slices.Contains(obs.Foreign, action.StoreID) {
			if err := r.verifyFormerOwnership(ctx, action.StoreID, in); err != nil {
				return err
			}
		}
		return r.verifier.Verify(ctx, expectedStore(in))
	case action.Verb == plan.WriteModel:
		return r.verifyDroppedModules(ctx, in, obs)
	}
	return nil
}

// verifyDroppedModules lists the objects of modules at the API server before a model is written without a live module. If one
// of them still exists, the informer lags behind and the plan is stale.
func (r *Reconciler) verifyDroppedModules(ctx context.Context, in plan.Input, obs plan.Observed) error {
	var missing []verify.ExpectedState
	if plan.MayDropModules(in) {
		known := map[string]bool{}
		for _, m := range in.Modules {
			known[m.Key.Name] = known[m.Key.Name] || m.Key.Cluster == in.Key.Cluster
		}
		err := event.DecodeEach(r.applier.kube.List(ctx, kinds.AuthorizationModels(), ""), func(m *corev1alpha1.AuthorizationModel) {
			is := module.ModelObject{Change: event.Change{Key: r.state.Shared.ModelKey(m.Name)}, Value: m}
			if module.ReferencedStoreKey(is) == in.Key && !known[m.Name] {
				held, _ := r.state.Shared.Models.GetOrTombstone(is.Key)
				held.Key = is.Key
				missing = append(missing, module.ExpectedModel(held))
			}
		})
		if err != nil {
			return err
		}
	}
	if plan.DropsTypes(in, obs) {
		resources, err := r.resources.ListMissingResources(ctx, in.Key)
		if err != nil {
			return err
		}
		missing = append(missing, resources...)
	}
	if len(missing) == 0 {
		return nil
	}
	if err := r.verifier.Verify(ctx, missing...); err != nil {
		return err
	}
	return fmt.Errorf("modules of %s: %w", in.Key, reconcile.ErrStale) // The informer has received them since.
}

func expectedStore(in plan.Input) verify.ExpectedState {
	return module.ExpectedStore(module.StoreObject{Change: in.Change, Value: in.Store})
}
