package opensearchsync

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

const (
	// maxConflicts bounds how often one change is tried again because somebody else writes the same document.
	maxConflicts = 12
	// conflictDelay is the longest wait before that.
	conflictDelay = 250 * time.Millisecond
)

// applier carries plans out. Nothing else changes OpenSearch.
type applier struct {
	metrics *metrics
	log     *slog.Logger
}

// refusals are verdicts on what OpenSearch refused, by the UIDs of objects.
type refusals map[string]plan.Verdict

// apply makes changes, one request after the other: the server keeps a kind in one document.
func (a *applier) apply(ctx context.Context, p *consume.Pass[Key], w work, actions []plan.Action, known *passwords) (refusals, error) {
	refused, changes := refusals{}, map[string]event.Change{}
	for _, o := range w.objects {
		changes[string(o.value.GetUID())] = o.Change
	}
	one := func(actions []plan.Action, do func() error) error {
		err := a.write(ctx, p.Key.Kind, do)
		if err == nil {
			for _, action := range actions {
				p.Count(changes[action.For[0]])
			}
		}
		return err
	}
	alone, batches := plan.Batches(p.Key.Kind, actions)
	for _, batch := range batches {
		if err := a.batch(batch, refused, func(part []plan.Action) error {
			return one(part, func() error { return w.to.client.Patch(ctx, p.Key.Kind, part) })
		}); err != nil {
			return refused, err
		}
	}
	for _, action := range alone {
		password := known.values[action.For[0]]
		err := one([]plan.Action{action}, func() error { return w.to.client.PutUser(ctx, action.Name, action.Body, password) })
		if !refused.take(action, err) && err != nil {
			return refused, err
		}
	}
	return refused, nil
}

// batch makes changes at once; what is refused is split until it is known which one is.
func (a *applier) batch(actions []plan.Action, refused refusals, write func([]plan.Action) error) error {
	err := write(actions)
	if _, is := errors.AsType[*search.RefusedError](err); !is {
		return err
	}
	if len(actions) == 1 {
		refused.take(actions[0], err)
		return nil
	}
	half := len(actions) / 2
	if err := a.batch(actions[:half], refused, write); err != nil {
		return err
	}
	return a.batch(actions[half:], refused, write)
}

// write makes one change, again while others write at the same time.
func (a *applier) write(ctx context.Context, kind plan.Kind, do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		a.metrics.wrote(kind, err)
		if !errors.Is(err, search.ErrConflict) || attempt == maxConflicts {
			return err
		}
		if !backoff.Sleep(ctx, time.Duration(rand.Int64N(int64(conflictDelay)))) {
			return err
		}
	}
}

// take keeps what OpenSearch refused, in its own words.
func (r refusals) take(action plan.Action, err error) bool {
	refusal, is := errors.AsType[*search.RefusedError](err)
	if !is {
		return false
	}
	for _, uid := range action.For {
		r[uid] = plan.Verdict{State: opensearchv1.Error, Reason: plan.Refused, Message: refusal.Text}
	}
	return true
}
