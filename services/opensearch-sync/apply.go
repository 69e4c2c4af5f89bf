package opensearchsync

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// conflictDelay bounds the random wait after a conflict with another writer of the document.
const conflictDelay = 250 * time.Millisecond

// planApplier executes plans. It is the only writer to OpenSearch.
type planApplier struct {
	metrics *writeMetrics
	// contests receives the changes that got no answer.
	contests *uncertainWrites
	// batchTime bounds how long one run writes passwords; see [Config].
	batchTime time.Duration
}

// applyResult is the result of a run's actions.
type applyResult struct {
	// refused holds the verdicts on refused actions, by the UIDs of objects.
	refused map[string]plan.Verdict
	// undone holds the names of entities that are not yet as planned: refused, not listed, or left for another run.
	undone map[string]bool
	// left means that another run must write the rest.
	left bool
	// unlisted means that OpenSearch accepted a change and does not list it.
	unlisted bool
}

// applyActions executes actions one request after the other, because the server keeps a kind in one document. Writes of
// passwords end after batchTime; the rest is left for another run.
func (a *planApplier) applyActions(ctx context.Context, p *controller.Request[Key], w syncInput, actions []plan.Action,
	known *runPasswords,
) (applyResult, error) {
	done, changes := applyResult{refused: map[string]plan.Verdict{}, undone: map[string]bool{}}, map[string]event.Change{}
	for _, o := range w.objects {
		changes[string(o.value.GetUID())] = o.Change
	}
	one := func(actions []plan.Action, do func() error) error {
		err := a.makeChange(ctx, p.Key, do)
		if err == nil {
			for _, action := range actions {
				p.CountWrite(changes[action.For[0]])
			}
		}
		return err
	}
	alone, batches := plan.SplitIntoRequests(p.Key.Kind, actions)
	for _, batch := range batches {
		if err := a.sendBatch(batch, &done, func(part []plan.Action) error {
			return one(part, func() error { return w.to.client.PatchEntities(ctx, p.Key.Kind, part) })
		}); err != nil {
			return done, err
		}
	}
	rand.Shuffle(len(alone), func(i, j int) { alone[i], alone[j] = alone[j], alone[i] }) // An action that fails each time must not starve the others.
	began := time.Now()
	for _, action := range alone {
		if time.Since(began) > a.batchTime {
			done.undone[action.Name], done.left = true, true
			continue
		}
		password := known.values[action.For[0]]
		err := one([]plan.Action{action}, func() error { return w.to.client.PutUser(ctx, action.Name, action.Body, password) })
		if !done.storeRefusal(action, err) && err != nil {
			return done, err
		}
	}
	return done, a.checkChangesListed(ctx, p.Key.Kind, w, actions, &done)
}

// checkChangesListed lists the kind and compares it with the changes that OpenSearch accepted.
func (a *planApplier) checkChangesListed(ctx context.Context, kind plan.EntityKind, w syncInput, actions []plan.Action, done *applyResult) error {
	if len(actions) == 0 {
		return nil
	}
	w.lists.Reset()
	listed, err := w.to.client.List(ctx, kind, w.lists)
	if err != nil {
		return fault.Unavailable(fmt.Errorf("reading changes back: %w", err))
	}
	for _, action := range actions {
		if done.undone[action.Name] {
			if action.Was != nil && !kind.ContainsResult(plan.Action{Name: action.Name, Body: action.Was}, listed) {
				return reconcile.ErrStale // The edits did not fit, because another writer has changed the mapping.
			}
			continue
		}
		if kind.ContainsResult(action, listed) {
			continue
		}
		done.unlisted, done.undone[action.Name] = true, true
		verdict := plan.Verdict{State: opensearchv1.Error, Reason: plan.NotListed, Message: fmt.Sprintf(
			"OpenSearch accepted the change of %q and lists something else; another client may have changed it", action.Name)}
		if kind == plan.Users && action.Body != nil && listed[action.Name].IsOperatorWritten() { // The next run must not write over it.
			verdict = plan.OverwrittenVerdict()
		}
		for _, uid := range action.For {
			done.refused[uid] = verdict
		}
	}
	return nil
}

// sendBatch sends several changes in one request. If OpenSearch refuses it, batch splits it until each refused change is
// known.
func (a *planApplier) sendBatch(actions []plan.Action, done *applyResult, write func([]plan.Action) error) error {
	err := write(actions)
	if _, is := errors.AsType[*search.RefusedError](err); !is {
		return err
	}
	if len(actions) == 1 {
		done.storeRefusal(actions[0], err)
		return nil
	}
	half := len(actions) / 2
	if err := a.sendBatch(actions[:half], done, write); err != nil {
		return err
	}
	return a.sendBatch(actions[half:], done, write)
}

// makeChange makes one change, and opens a contest if there is no answer. If another client writes at the same time, the error is
// [reconcile.ErrStale]: the same change could overwrite what that client wrote.
func (a *planApplier) makeChange(ctx context.Context, key Key, do func() error) error {
	err := do()
	a.metrics.countWrite(key.Kind, err)
	if errors.Is(err, search.ErrConflict) {
		backoff.Sleep(ctx, time.Duration(rand.Int64N(int64(conflictDelay))))
		return fmt.Errorf("%w: %w", reconcile.ErrStale, err)
	}
	if _, refused := errors.AsType[*search.RefusedError](err); err != nil && !refused {
		a.contests.addUnanswered(key)
	}
	return err
}

// storeRefusal stores a refusal as the verdict of the action's objects. It reports whether err is one.
func (d *applyResult) storeRefusal(action plan.Action, err error) bool {
	refusal, is := errors.AsType[*search.RefusedError](err)
	if !is {
		return false
	}
	d.undone[action.Name] = true
	for _, uid := range action.For {
		d.refused[uid] = plan.Verdict{State: opensearchv1.Error, Reason: plan.Refused, Message: refusal.Text}
	}
	return true
}
