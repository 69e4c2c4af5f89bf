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

// confirmAction compares the basis of an action with the API server. It covers everything that the action writes to OpenFGA,
// removes there or reports in a status. The answer to an earlier write usually confirms it already.
func (r *Reconciler) confirmAction(ctx context.Context, action plan.Action, in plan.Input, obs plan.Observed) error {
	if in.Store == nil {
		return r.confirmGone(ctx, action, in, obs)
	}
	var statements []confirm.Statement
	var err error
	switch action.Verb {
	case plan.CreateStore, plan.RenameStore:
		statements = append(statements, ofStore(in))
	case plan.RemoveFinalizer:
		statements, err = r.state.missingSources(ctx, in.Key)
		statements = append(statements, ofStore(in))
	case plan.WriteModel, plan.DeleteStore:
		if err := r.confirmOwn(ctx, action, in, obs); err != nil {
			return err
		}
		provided, made := r.state.providedModules(in.Key)
		if action.Verb == plan.WriteModel && !reflect.DeepEqual(provided, in.Provided) {
			return fmt.Errorf("what is provided for %s: %w", in.Key, reconcile.ErrStale)
		}
		parts, partsErr := r.modelStatements(ctx, in)
		missing, missingErr := r.state.missingSources(ctx, in.Key)
		statements, err = slices.Concat(parts, made, missing), errors.Join(partsErr, missingErr)
	case plan.RecordLive:
		statements = statementsOf(in, plan.Taken(in))
	case plan.Record:
		if !slices.Contains(obs.Foreign, action.StoreID) {
			err = r.confirmLeft(ctx, action.StoreID, in)
		}
		statements = append(statementsOf(in, plan.Unrecorded(in, obs)), ofStore(in))
	case plan.WriteStatus:
		statements = statementsOf(in, plan.Unrecorded(in, obs))
	default: // The action grants nothing.
	}
	if err != nil {
		return err
	}
	return r.confirmer.Confirm(ctx, statements...)
}

// modelStatements returns statements on all objects in the model of a Store. If its status cannot list all modules, parts lists
// the AuthorizationModels at the API server.
func (r *Reconciler) modelStatements(ctx context.Context, in plan.Input) ([]confirm.Statement, error) {
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

// statementsOf returns statements on the Store and the modules among keys.
func statementsOf(in plan.Input, keys []event.Key) (statements []confirm.Statement) {
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
