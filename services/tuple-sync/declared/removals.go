package declared

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"golang.org/x/sync/errgroup"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

const (
	// clockSkew bounds how far this clock is ahead of OpenFGA's. A larger skew only causes a needless read of a store.
	clockSkew = time.Minute
	// maxChangePages bounds the pages of changes that are read to find the last removals.
	maxChangePages = 50
	// few bounds the tuples that are read one by one, and concurrentReads how many at once.
	few, concurrentReads = 4, 8
	// readAhead bounds the tuples of the store that are read for each tuple to find.
	readAhead = 25
)

// tuplesRestored is the reason of the Event about restored tuples.
const tuplesRestored = "TuplesRestored"

// decodeRemovedTuples decodes the record of tuples removed from a store.
func (o *ownerObject) decodeRemovedTuples(storeID string) (plan.RemovedTuples, error) {
	if o == nil || o.removed == nil || o.removed.StoreID != storeID {
		return plan.RemovedTuples{}, nil
	}
	return plan.UnpackRemovedTuples(o.removed)
}

// newRemovalsRecord returns an empty record for a Store that has none for this OpenFGA store. It returns nil if the Store
// needs none.
func (a *planApplier) newRemovalsRecord(storeID string, o *ownerObject) *corev1alpha1.RemovedTuples {
	if a.retention == 0 || !o.IsRemovalsRecorderOf(storeID) || o.removed != nil && o.removed.StoreID == storeID {
		return nil
	}
	return plan.NewRemovedTuples(storeID, time.Now())
}

// readStoreIfNeeded reads the store if the plan needs it: when a record may be wrong, at a resync, and when OpenFGA may have
// been restored. It checks for a restore at the start and with each new model, because store-sync writes one if OpenFGA
// lost the last.
func (r *Reconciler) readStoreIfNeeded(ctx context.Context, p *passState, s *planSnapshot, thorough bool) (err error) {
	storeID := s.input.StoreID
	if storeID == "" || !thorough && r.records.isCompared(s.life) {
		return nil
	}
	if s.input.Removals, err = s.store.decodeRemovedTuples(storeID); err != nil {
		r.applier.log.WarnContext(ctx, "record of removed tuples cannot be read", slog.String("store", storeID), slog.Any("error", err))
	}
	if list := s.input.Removals.List; !thorough && len(list) > 0 {
		if thorough, err = r.applier.hasLostRemoval(ctx, storeID, list); err != nil {
			return err
		}
		p.resync = thorough
	}
	if thorough {
		return r.applier.readObservedTuples(ctx, &s.input)
	}
	if len(s.input.Removals.List) > 0 {
		r.records.markCompared(s.life)
	}
	return nil
}

// hasLostRemoval reports whether OpenFGA's list of changes lacks a recorded removal of the last recorded second. It does
// if the database was restored from an earlier backup.
func (a *planApplier) hasLostRemoval(ctx context.Context, storeID string, list []plan.RemovedTuple) (bool, error) {
	last := list[len(list)-1].Removed
	missing := map[tuple.ID]bool{}
	for _, r := range slices.Backward(list) {
		if r.Removed.Before(last) {
			break
		}
		missing[r.ID] = true
	}
	token, since := "", last.Add(-clockSkew)
	for range maxChangePages {
		page, next, err := a.openFGA.ReadChanges(ctx, storeID, token, since)
		if err != nil {
			return false, err
		}
		for _, c := range page {
			if c.GetOperation() == openfgav1.TupleOperation_TUPLE_OPERATION_DELETE {
				delete(missing, tuple.FromOpenFGA(c.GetTupleKey()).ID)
			}
		}
		if token = next; len(missing) == 0 || len(page) == 0 || token == "" {
			break
		}
	}
	return len(missing) > 0, nil
}

// recordRemovals adds the removed tuples to the record of the Store in the plan.
func (a *planApplier) recordRemovals(ctx context.Context, s *planSnapshot, decided *plan.Plan) error {
	if a.retention == 0 || s.input.StoreID == "" {
		return nil
	}
	removals, written := s.input.Removals, s.input.Written
	if s.input.Observed == nil {
		var err error
		if written, err = a.writeTimesOf(ctx, s.input.StoreID, decided.Remove); err != nil {
			return err
		}
		removals, _ = s.store.decodeRemovedTuples(s.input.StoreID) // An unreadable record starts again.
	}
	if len(removals.List) == 0 { // The first record of this process needs no comparison.
		a.records.markCompared(s.life)
	}
	return decided.RecordRemovals(removals, written, time.Now(), a.retention)
}

// writeTimesOf returns when OpenFGA wrote each of these tuples that it holds. For many tuples it first reads pages of the
// store, while that may take fewer calls than single reads.
func (a *planApplier) writeTimesOf(ctx context.Context, storeID string, tuples []tuple.Tuple) (map[tuple.ID]time.Time, error) {
	written, missing := make(map[tuple.ID]time.Time, len(tuples)), make(map[tuple.ID]bool, len(tuples))
	for _, t := range tuples {
		missing[t.ID] = true
	}
	if budget := len(tuples) * readAhead; len(tuples) > few {
		for t, err := range a.openFGA.ReadTuples(ctx, storeID) {
			if err != nil {
				return nil, err
			}
			if held := tuple.FromOpenFGA(t.GetKey()); missing[held.ID] {
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
	if group.SetLimit(concurrentReads); len(tuples) <= few {
		group.SetLimit(1)
	}
	for id := range missing {
		group.Go(func() error {
			t, found, err := a.openFGA.ReadTuple(ctx, storeID, tuple.Tuple{ID: id}.ToOpenFGA())
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

// reportRestoredTuples reports restored tuples that were removed again, by an Event of the Store, a log line and a metric.
func (a *planApplier) reportRestoredTuples(ctx context.Context, s *planSnapshot, decided plan.Plan) {
	n := len(decided.Restored)
	if n == 0 {
		return
	}
	a.restored(n)
	message := fmt.Sprintf("OpenFGA held %d removed tuples again, for example %s, as after a restore; tuple-sync removed them.", n, decided.Restored[0])
	a.log.WarnContext(ctx, "restored tuples removed", slog.String("store", s.input.StoreID), slog.Int("tuples", n))
	a.status.RecordEvents(ctx, s.store.change, condition.EventContent{Warning: true, Reason: tuplesRestored, Message: message})
}
