package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// confirm asks the API server about all that an action puts into OpenFGA, takes from there, or has a status say of it,
// unless it has said so: in the answer to a write of ours, as a rule.
func (r *Reconciler) confirm(ctx context.Context, action plan.Action, in plan.Input, obs plan.Observed) error {
	if in.Store == nil {
		return r.confirmGone(ctx, action, in, obs)
	}
	var statements []confirm.Statement
	var err error
	switch action.Verb {
	case plan.CreateStore, plan.RenameStore:
		statements = append(statements, ofStore(in))
	case plan.RemoveFinalizer:
		statements, err = r.state.missing(ctx, in.Key)
		statements = append(statements, ofStore(in))
	case plan.WriteModel, plan.DeleteStore:
		if err := r.confirmOwn(ctx, action, in, obs); err != nil {
			return err
		}
		provided, made := r.state.provided(in.Key)
		if action.Verb == plan.WriteModel && !reflect.DeepEqual(provided, in.Provided) {
			return fmt.Errorf("what is provided for %s: %w", in.Key, reconcile.ErrStale)
		}
		parts, partsErr := r.parts(ctx, in)
		missing, missingErr := r.state.missing(ctx, in.Key)
		statements, err = slices.Concat(parts, made, missing), errors.Join(partsErr, missingErr)
	case plan.RecordLive:
		statements = of(in, plan.Taken(in))
	case plan.Record:
		if !slices.Contains(obs.Foreign, action.StoreID) {
			err = r.confirmLeft(ctx, action.StoreID, in)
		}
		statements = append(of(in, plan.Unrecorded(in, obs)), ofStore(in))
	case plan.WriteStatus:
		statements = of(in, plan.Unrecorded(in, obs))
	default: // Nothing is given by it.
	}
	if err != nil {
		return err
	}
	return r.confirmer.Confirm(ctx, statements...)
}

// parts are statements on all that the model of a Store is made of. What its status has no room for is found at the API server.
func (r *Reconciler) parts(ctx context.Context, in plan.Input) ([]confirm.Statement, error) {
	models := make([]module.Model, len(in.Modules))
	for i, m := range in.Modules {
		models[i] = module.Model(m)
	}
	var unlisted []string
	var err error
	if len(in.Store.Status.Modules) >= plan.MaxModules {
		err = event.Each(r.applier.kube.List(ctx, kinds.AuthorizationModels(), ""), func(m *corev1alpha1.AuthorizationModel) {
			is := module.Model{Change: event.Change{Key: r.state.Shared.ModelKey(m.Name)}, Value: m}
			if module.StoreOf(is) == in.Key {
				unlisted = append(unlisted, model.AuthorizationModel.String()+"/"+m.Name)
			}
		})
	}
	return r.state.Shared.Parts(module.Store{Change: in.Change, Value: in.Store}, models, unlisted...), err
}

// of are statements on some objects.
func of(in plan.Input, keys []event.Key) (statements []confirm.Statement) {
	if slices.Contains(keys, in.Key) {
		statements = append(statements, ofStore(in))
	}
	for _, m := range in.Modules {
		if slices.Contains(keys, m.Key) {
			statements = append(statements, ofModule(m))
		}
	}
	return statements
}

func ofStore(in plan.Input) confirm.Statement {
	return module.StoreStatement(module.Store{Change: in.Change, Value: in.Store})
}

func ofModule(m plan.Module) confirm.Statement { return module.ModelStatement(module.Model(m)) }
