package tuplesync

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/tuple-sync/plan"
)

// cluster is what is needed of the API server.
type cluster interface {
	Get(ctx context.Context, kind kinds.Kind, namespace, name string) (event.Change, error)
	ApplyStatus(ctx context.Context, kind kinds.Kind, obj event.Change, status any, cas bool) (event.Change, error)
	AddFinalizer(ctx context.Context, kind kinds.Kind, obj event.Change, finalizer string) (event.Change, error)
	RemoveFinalizer(ctx context.Context, kind kinds.Kind, obj event.Change, finalizer string) (event.Change, error)
}

// tuples is what is needed of OpenFGA to keep tuples.
type tuples interface {
	Write(ctx context.Context, storeID, modelID string, add, remove []*openfgav1.TupleKey) error
	ReadTuples(ctx context.Context, storeID string) iter.Seq2[*openfgav1.Tuple, error]
}

// reconciler brings the tuples of OpenFGA stores to what the objects in the view ask for.
type reconciler struct {
	*scene
	view    *view.View
	cluster cluster
	openFGA tuples
	cache   *models
	log     *slog.Logger
	// announce tells caches whose tuples changed.
	announce func(context.Context, *eventv1.StoreChanged) error
}

// maxTries bounds how often a pass begins anew because objects change under it.
const maxTries = 8

// errAnew means that what was planned from has changed.
var errAnew = errors.New("objects keep changing")

// Reconcile implements [consume.Reconciler].
func (r *reconciler) Reconcile(ctx context.Context, pass *consume.Pass[Key]) error {
	t := &tally{pass: pass, stuck: map[string]error{}}
	for range maxTries {
		s, err := r.survey(ctx, pass.Key, pass.Resync)
		if err != nil {
			return err
		}
		for i := range s.Owners {
			_, s.Owners[i].Stuck = t.stuck[s.Owners[i].UID]
		}
		p := &performance{reconciler: r, survey: s, tally: t, plan: plan.Make(s.Input)}
		err = p.perform(ctx)
		if err == nil {
			p.conclude()
			return nil
		}
		if !errors.Is(err, errAnew) {
			return err
		}
	}
	return fault.Unavailable(fmt.Errorf("tuples of %s: %w", pass.Key, errAnew))
}

// survey is what a plan is made from, and the objects behind it.
type survey struct {
	plan.Input
	objects map[string]*object // by UID
}

// survey looks at everything that has to do with key. It reads the store's tuples only
// if it must: thoroughly, or where a record may not be true.
func (r *reconciler) survey(ctx context.Context, key Key, thorough bool) (*survey, error) {
	s := &survey{Input: plan.Input{StoreID: key.StoreID}, objects: map[string]*object{}}
	modelID, declared, first := "", false, r.memory.visit(key.StoreID)
	for _, o := range r.under(key) {
		if o.Home == key.StoreID && o.model != "" {
			modelID = o.model
		}
		declared = declared || len(o.Declared) > 0
		if o.Record.StoreID == key.StoreID && !r.memory.knows(o) {
			thorough = thorough || o.Gone || !first
			if first && !o.Gone {
				r.memory.learn(key.StoreID, o)
			}
		}
		s.Owners = append(s.Owners, o.Owner)
		s.objects[o.UID] = &o
	}
	var err error
	if declared {
		if s.Model, err = r.cache.get(ctx, key.StoreID, modelID); err != nil {
			return nil, err
		}
	}
	if thorough && key.StoreID != "" {
		s.Found, err = r.find(ctx, s.Input)
	}
	return s, err
}

func (r *reconciler) under(key Key) []object {
	if key.StoreID != "" {
		return r.owners(key.StoreID)
	}
	if o, ok := r.lookUp(key.Owner); ok {
		return []object{o}
	}
	return nil
}

// find reads which of the tuples that anybody declares or has recorded the store holds.
func (r *reconciler) find(ctx context.Context, in plan.Input) (map[plan.ID]plan.Tuple, error) {
	found := map[plan.ID]plan.Tuple{}
	ours := map[plan.ID]struct{}{}
	for _, o := range in.Owners {
		for _, tuples := range [][]plan.Tuple{o.Declared, o.Record.Tuples} {
			for _, t := range tuples {
				ours[t.ID] = struct{}{}
			}
		}
	}
	if len(ours) == 0 {
		return found, nil
	}
	for t, err := range r.openFGA.ReadTuples(ctx, in.StoreID) {
		if err != nil {
			return nil, err
		}
		held := plan.Found(t.GetKey())
		if _, ok := ours[held.ID]; ok {
			found[held.ID] = held
		}
	}
	return found, nil
}

// conclude remembers what is now known to be true, and tells what was made of each object.
func (p *performance) conclude() {
	for _, s := range p.plan.Steps {
		o := p.objects[s.UID]
		if o.Gone {
			p.memory.bury(p.StoreID, *o)
		} else if s.Checked() && p.Model != nil {
			p.memory.learn(p.StoreID, *o)
		}
		became, message := outcome(s), ""
		if became != eventv1.Outcome_OUTCOME_APPLIED {
			message = s.Says.Message
		}
		if err, ok := p.stuck[o.UID]; ok {
			became, message = eventv1.Outcome_OUTCOME_REJECTED, err.Error()
		}
		p.pass.Report(o.change, became, message)
	}
}

func outcome(s plan.Step) eventv1.Outcome {
	switch s.Says.Reason {
	case plan.Invalid:
		return eventv1.Outcome_OUTCOME_REJECTED
	case plan.Pending, plan.StoreNotFound, plan.Syncing:
		return eventv1.Outcome_OUTCOME_PENDING
	}
	return eventv1.Outcome_OUTCOME_APPLIED
}
