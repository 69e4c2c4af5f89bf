package tuplesync

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// tupleHistory is when the simulated OpenFGA wrote and deleted tuples.
type tupleHistory struct {
	now       int64
	written   map[storedTuple]time.Time
	deletions []deletion
	// restored holds tuples that a restore brought back.
	restored map[storedTuple]bool
}

// storedTuple is a tuple in a store.
type storedTuple struct {
	store string
	tuple.ID
}

type deletion struct {
	store       string
	tuple       tuple.Tuple
	written, at time.Time
}

func newHistory() tupleHistory {
	return tupleHistory{written: map[storedTuple]time.Time{}, restored: map[storedTuple]bool{}}
}

func (h *tupleHistory) tick() time.Time {
	h.now++
	return time.Unix(h.now, 0)
}

// deleted records a deletion, and checks that the Store recorded it before.
func (w *simulatedServers) deleted(storeID string, t tuple.Tuple) {
	key := storedTuple{storeID, t.ID}
	d := deletion{storeID, t, w.written[key], w.tick()}
	delete(w.written, key)
	delete(w.restored, key)
	w.deletions = append(w.deletions, d)
	stays := func(a *simulatedObject) bool {
		return a.isStore() && a.status.StoreID == storeID && a.meta.DeletionTimestamp == nil
	}
	if slices.ContainsFunc(slices.Collect(maps.Values(w.things)), stays) && w.fresh() && !w.remembers(d) && w.broken == nil {
		w.broken = fmt.Errorf("store %s loses %s, and no Store has recorded that", storeID, t.ID)
	}
}

// remembers reports whether a Store has recorded a deletion.
func (w *simulatedServers) remembers(d deletion) bool {
	for _, a := range w.things {
		if r := a.status.RemovedTuples; a.isStore() && r != nil && r.StoreID == d.store && a.status.StoreID == d.store {
			record, err := plan.UnpackRemovedTuples(r)
			if err != nil {
				w.Fatal(err)
			}
			for _, l := range record.List {
				if l.ID == d.tuple.ID && !d.written.After(l.Written) {
					return true
				}
			}
		}
	}
	return false
}

// restore brings back the recorded tuples from before a deletion, and drops that and later deletions.
func (w *simulatedServers) restore(from int) {
	before, back := w.deletions[from].at, w.deletions[from:]
	w.deletions = w.deletions[:from]
	for _, d := range back {
		contents, key := w.contents[d.store], storedTuple{d.store, d.tuple.ID}
		if _, there := contents[d.tuple.ID]; !there && contents != nil && d.written.Before(before) && w.remembers(d) {
			contents[d.tuple.ID], w.written[key], w.restored[key] = d.tuple, d.written, true
			w.tell("  %s has %v again", d.store, d.tuple)
		}
	}
}

func (w *simulatedServers) ReadTuple(_ context.Context, storeID string, key *openfgav1.TupleKey) (found *openfgav1.Tuple, ok bool, err error) {
	w.reading.Lock() // Of many tuples, several are read at a time.
	defer w.reading.Unlock()
	err = w.call("read one", func() error {
		var t tuple.Tuple
		t, ok = w.contents[storeID][tuple.FromOpenFGA(key).ID]
		found = w.stamped(storeID, t)
		return nil
	})
	return found, ok, err
}

func (w *simulatedServers) stamped(storeID string, t tuple.Tuple) *openfgav1.Tuple {
	return &openfgav1.Tuple{Key: t.ToOpenFGA(), Timestamp: timestamppb.New(w.written[storedTuple{storeID, t.ID}])}
}

func (w *simulatedServers) ReadChanges(_ context.Context, storeID, token string, _ time.Time) (changes []*openfgav1.TupleChange, next string, err error) {
	err = w.call("read changes", func() error {
		for _, d := range w.deletions {
			if d.store == storeID && token == "" {
				changes = append(changes, &openfgav1.TupleChange{
					TupleKey: d.tuple.ToOpenFGA(), Operation: openfgav1.TupleOperation_TUPLE_OPERATION_DELETE, Timestamp: timestamppb.New(d.at),
				})
			}
		}
		return nil
	})
	return changes, "end", err
}
