package tuplesync

import (
	"context"
	"errors"
	"fmt"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/tuple-sync/plan"
)

// write changes the store. What the server refuses although the model allows it is
// found, remembered with the model, and everything is planned anew without it.
func (p *performance) write(ctx context.Context) error {
	if len(p.plan.Write)+len(p.plan.Remove) == 0 {
		return nil
	}
	err := p.send(ctx, p.plan.Write, p.plan.Remove)
	switch {
	case errors.Is(err, fga.ErrInvalidTuple) && len(p.plan.Write) > 0:
		refused := map[plan.Tuple]error{}
		if failed := p.isolate(ctx, p.plan.Write, refused); failed != nil {
			return failed
		}
		if len(refused) == 0 {
			return err
		}
		p.cache.put(p.Model.Refusing(refused))
		return errAnew
	case errors.Is(err, fga.ErrModelNotFound), errors.Is(err, fga.ErrStoreNotFound):
		if len(p.plan.Write) > 0 {
			// The server has lost the model: nothing can be added until store-sync has written one.
			p.cache.drop(p.Model)
			return errAnew
		}
		// A store without a model has no tuples.
	case err != nil:
		return err
	}
	return p.tell(ctx)
}

func (p *performance) send(ctx context.Context, add, remove []plan.Tuple) error {
	modelID := ""
	if p.Model != nil {
		modelID = p.Model.ID()
	}
	return p.openFGA.Write(ctx, p.StoreID, modelID, plan.Keys(add), plan.Keys(remove))
}

// isolate writes all that can be written, by halves, and collects what cannot.
func (p *performance) isolate(ctx context.Context, add []plan.Tuple, refused map[plan.Tuple]error) error {
	err := p.send(ctx, add, nil)
	if !errors.Is(err, fga.ErrInvalidTuple) {
		return err
	}
	if len(add) == 1 {
		refused[add[0]] = errors.New(plan.Reason(err))
		return nil
	}
	half := len(add) / 2
	if err := p.isolate(ctx, add[:half], refused); err != nil {
		return err
	}
	return p.isolate(ctx, add[half:], refused)
}

// tell announces the objects whose tuples changed. It happens before the records say
// that all is done: whoever crashes in between writes and tells again.
func (p *performance) tell(ctx context.Context) error {
	told := &eventv1.StoreChanged{StoreId: p.StoreID}
	seen := map[string]struct{}{}
	for _, tuples := range [][]plan.Tuple{p.plan.Write, p.plan.Remove} {
		for _, t := range tuples {
			if _, ok := seen[t.Object]; !ok {
				seen[t.Object] = struct{}{}
				told.Objects = append(told.Objects, t.Object)
			}
		}
	}
	if err := p.announce(ctx, told); err != nil {
		return fmt.Errorf("announcing changed tuples of OpenFGA store %s: %w", p.StoreID, err)
	}
	return nil
}
