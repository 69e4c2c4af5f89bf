package store

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// confirm asks the API server about all that an action puts into OpenFGA, or into a status as a text that is live,
// unless it has said so: in the answer to a write of ours, as a rule.
func (r *Reconciler) confirm(ctx context.Context, verb plan.Verb, in plan.Input, obs plan.Observed) error {
	if in.Store == nil {
		return nil
	}
	var statements []confirm.Statement
	switch verb {
	case plan.CreateStore, plan.RenameStore, plan.DeleteStore:
		statements = append(statements, ofStore(in))
	case plan.WriteModel:
		var models []module.Model
		for _, m := range in.Modules {
			models = append(models, module.Model(m))
		}
		provided, made := r.state.provided(in.Key)
		if !reflect.DeepEqual(provided, in.Provided) {
			return fmt.Errorf("what is provided for %s: %w", in.Key, reconcile.ErrStale)
		}
		statements = append(r.state.Shared.Parts(module.Store{Change: in.Change, Value: in.Store}, models), made...)
	case plan.RecordLive:
		statements = of(in, plan.Taken(in))
	case plan.Record, plan.WriteStatus:
		statements = of(in, plan.Unrecorded(in, obs))
	default: // Nothing is given by it.
	}
	return r.confirmer.Confirm(ctx, statements...)
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
