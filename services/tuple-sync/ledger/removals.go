package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"golang.org/x/sync/errgroup"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

const (
	// clockSkew bounds how much this clock is ahead of OpenFGA's. If it is more, a store is read that was not restored.
	clockSkew = time.Minute
	// maxChangePages bounds how many pages of changes are read to find one of them.
	maxChangePages = 50
	// few is how many tuples are read one by one, and concurrentReads how many at once.
	few, concurrentReads = 4, 8
	// readAhead is how many tuples of the store are read for each of many that are looked up.
	readAhead = 25
)

// tuplesRestored is the reason of the Event about restored tuples.
const tuplesRestored = "TuplesRestored"

// removals reads the record of what was removed from a store.
func (o *object) removals(storeID string) (plan.Removals, error) {
	if o == nil || o.removed == nil || o.removed.StoreID != storeID {
		return plan.Removals{}, nil
	}
	return plan.UnpackRemovals(o.removed)
}

// beginRemovals returns the empty record for a Store that has none of this OpenFGA store; nil if it needs none.
func (a *applier) beginRemovals(storeID string, o *object) *corev1alpha1.RemovedTuples {
	if a.retention == 0 || !o.RecordsRemovals(storeID) || o.removed != nil && o.removed.StoreID == storeID {
		return nil
	}
	return plan.BeginRemovals(storeID, time.Now())
}

// readStore reads what the store holds if the plan needs it: when a record may not be true, at a resync, and when OpenFGA may have
// been restored. That is checked at the start, and with each new model: store-sync writes one if OpenFGA lost the last.
func (r *Reconciler) readStore(ctx context.Context, p *pass, s *snapshot, thorough bool) (err error) {
	storeID := s.input.StoreID
	if storeID == "" || !thorough && r.records.isCompared(s.life) {
		return nil
	}
	if s.input.Removals, err = s.store.removals(storeID); err != nil {
		r.applier.log.WarnContext(ctx, "record of removed tuples cannot be read", slog.String("store", storeID), slog.Any("error", err))
	}
	if list := s.input.Removals.List; !thorough && len(list) > 0 {
		if thorough, err = r.applier.hasLost(ctx, storeID, list[len(list)-1]); err != nil {
			return err
		}
		p.resync = thorough
	}
	if thorough {
		return r.applier.observe(ctx, &s.input)
	}
	if len(s.input.Removals.List) > 0 {
		r.records.noteCompared(s.life)
	}
	return nil
}

// hasLost reports whether OpenFGA's list of changes lacks the last recorded removal: a database restored from a copy that was made
// before does.
func (a *applier) hasLost(ctx context.Context, storeID string, last plan.Removal) (bool, error) {
	token, since := "", last.Removed.Add(-clockSkew)
	for range maxChangePages {
		page, next, err := a.openFGA.ReadChanges(ctx, storeID, token, since)
		if err != nil {
			return false, err
		}
		for _, c := range page {
			if c.GetOperation() == openfgav1.TupleOperation_TUPLE_OPERATION_DELETE && tuple.Of(c.GetTupleKey()).ID == last.ID {
				return false, nil
			}
		}
		if token = next; len(page) == 0 || token == "" {
			break
		}
	}
	return true, nil
}

// recordRemovals adds to the plan that the Store records what is removed.
func (a *applier) recordRemovals(ctx context.Context, s *snapshot, decided *plan.Plan) error {
	if a.retention == 0 || s.input.StoreID == "" {
		return nil
	}
	removals, written := s.input.Removals, s.input.Written
	if s.input.Observed == nil {
		var err error
		if written, err = a.writtenAt(ctx, s.input.StoreID, decided.Remove); err != nil {
			return err
		}
		removals, _ = s.store.removals(s.input.StoreID) // If it cannot be read, it begins again.
	}
	if len(removals.List) == 0 { // What this process records first, it need not look for.
		a.records.noteCompared(s.life)
	}
	return decided.RecordRemovals(removals, written, time.Now(), a.retention)
}

// writtenAt reads when OpenFGA wrote each of these tuples, if it holds it. Of many it reads the store first, page by page, as far
// as that may take fewer calls than one for each.
func (a *applier) writtenAt(ctx context.Context, storeID string, tuples []tuple.Tuple) (map[tuple.ID]time.Time, error) {
	written, missing := make(map[tuple.ID]time.Time, len(tuples)), make(map[tuple.ID]bool, len(tuples))
	for _, t := range tuples {
		missing[t.ID] = true
	}
	if budget := len(tuples) * readAhead; len(tuples) > few {
		for t, err := range a.openFGA.ReadTuples(ctx, storeID) {
			if err != nil {
				return nil, err
			}
			if held := tuple.Of(t.GetKey()); missing[held.ID] {
				written[held.ID] = t.GetTimestamp().AsTime()
				delete(missing, held.ID)
			}
			if budget--; budget == 0 || len(missing) == 0 {
				break
			}
		}
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentReads)
	for id := range missing {
		group.Go(func() error {
			t, found, err := a.openFGA.ReadTuple(ctx, storeID, tuple.Tuple{ID: id}.Key())
			if found {
				mu.Lock()
				defer mu.Unlock()
				written[id] = t.GetTimestamp().AsTime()
			}
			return err
		})
	}
	return written, group.Wait()
}

// noteRestored reports restored tuples that were removed again, in an Event about the Store, the log and a metric.
func (a *applier) noteRestored(ctx context.Context, s *snapshot, decided plan.Plan) {
	n := len(decided.Restored)
	if n == 0 {
		return
	}
	a.restored(n)
	message := fmt.Sprintf("OpenFGA had %d removed tuples again, as after a restore, such as %s; tuple-sync removed them.", n, decided.Restored[0])
	a.log.WarnContext(ctx, "restored tuples removed", slog.String("store", s.input.StoreID), slog.Int("tuples", n))
	a.status.Note(ctx, s.store.change, condition.Note{Warning: true, Reason: tuplesRestored, Message: message})
}
