package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

const (
	// maxRemovals bounds the packed record of removed tuples, in bytes.
	maxRemovals = 64 << 10
	// refreshAfter bounds how much earlier than its last removal a tuple's recorded removal may be.
	refreshAfter = 24 * time.Hour
)

// RemovedTuple is a tuple that was removed from a store. Its JSON is part of the record.
type RemovedTuple struct {
	tuple.ID
	// Written is OpenFGA's timestamp of the tuple.
	Written time.Time
	// Removed is when the removal began, in seconds.
	Removed time.Time
}

// RemovedTuples records the recently removed tuples of one OpenFGA store. It outlives the objects that declared them.
type RemovedTuples struct {
	// Since is the start of the record; zero without one.
	Since time.Time
	// Truncated means that removals within the retention are missing.
	Truncated bool
	// List starts with the earliest removal, and has each tuple once.
	List []RemovedTuple
	// size is the size of the packed list, in bytes.
	size int
}

// NewRemovedTuples returns the empty record of a store.
func NewRemovedTuples(storeID string, now time.Time) *corev1alpha1.RemovedTuples {
	return &corev1alpha1.RemovedTuples{StoreID: storeID, Since: metav1.NewTime(now.Truncate(time.Second))}
}

// UnpackRemovedTuples decodes a record. An unreadable record counts as truncated.
func UnpackRemovedTuples(packed *corev1alpha1.RemovedTuples) (RemovedTuples, error) {
	r := RemovedTuples{Since: packed.Since.Time, Truncated: packed.Truncated, size: len(packed.Data)}
	if len(packed.Data) == 0 {
		return r, nil
	}
	list, err := tuple.UnpackList[RemovedTuple](packed.Data)
	if err != nil {
		return RemovedTuples{Truncated: true, size: r.size}, fmt.Errorf("status.removedTuples: %w", err)
	}
	r.List = list
	return r, nil
}

// packWithinLimit encodes the record in at most limit bytes of data. It drops the earliest removals if needed.
func (r RemovedTuples) packWithinLimit(storeID string, limit int) (*corev1alpha1.RemovedTuples, error) {
	for {
		data, err := tuple.PackList(r.List)
		if len(r.List) == 0 {
			data = nil
		}
		if err == nil && len(data) <= limit {
			return &corev1alpha1.RemovedTuples{
				StoreID: storeID, Since: metav1.NewTime(r.Since), Truncated: r.Truncated, Encoding: corev1alpha1.EncodingZstd, Data: data,
			}, nil
		}
		if len(r.List) == 0 {
			return nil, err
		}
		dropped := len(r.List)/8 + 1
		r.Since, r.Truncated, r.List = r.List[dropped-1].Removed, true, r.List[dropped:]
	}
}

// mergeRemovals returns the record with tuples that are removed now, and without those that are claimed or were removed too long ago. It
// returns false if the record lists these removals.
func (r RemovedTuples) mergeRemovals(removed []RemovedTuple, claims map[tuple.ID]tupleClaim, now time.Time, retention time.Duration) (RemovedTuples, bool) {
	now = now.UTC().Truncate(time.Second)
	listed, changed := make(map[tuple.ID]RemovedTuple, len(r.List)), false
	for _, l := range r.List {
		listed[l.ID] = l
	}
	for _, n := range removed {
		l, known := listed[n.ID]
		if known && !n.Written.After(l.Written) {
			if now.Sub(l.Removed) < refreshAfter {
				continue
			}
			n.Written = l.Written
		}
		n.Removed, changed = now, true
		listed[n.ID] = n
	}
	next := RemovedTuples{Since: r.Since, Truncated: r.Truncated, size: r.size}
	if r.Since.IsZero() {
		next.Since = now
	}
	for _, l := range listed {
		if _, claimed := claims[l.ID]; claimed {
			continue
		}
		if now.Sub(l.Removed) <= retention {
			next.List = append(next.List, l)
		} else if l.Removed.After(next.Since) {
			next.Since = l.Removed
		}
	}
	next.Truncated = next.Truncated && now.Sub(next.Since) <= retention
	slices.SortFunc(next.List, func(a, b RemovedTuple) int { return cmp.Or(a.Removed.Compare(b.Removed), a.ID.Compare(b.ID)) })
	return next, changed
}

// RecordRemovals makes the plan record in the Store what it removes, before it removes it. Tuples without a time in written are not in
// OpenFGA, and are not recorded. If the Store cannot be changed, nothing is recorded.
func (p *Plan) RecordRemovals(r RemovedTuples, written map[tuple.ID]time.Time, now time.Time, retention time.Duration) error {
	i := slices.IndexFunc(p.Actions, func(a OwnerAction) bool { return a.Evaluation.Owner.IsStore && a.Evaluation.phase == here })
	if i < 0 {
		return nil
	}
	var removed []RemovedTuple
	for _, t := range p.Remove {
		if at, there := written[t.ID]; there {
			removed = append(removed, RemovedTuple{ID: t.ID, Written: at})
		}
	}
	next, changed := r.mergeRemovals(removed, p.claims, now, retention)
	if !changed {
		return nil
	}
	a := &p.Actions[i]
	o := a.Evaluation.Owner
	room := a.Evaluation.remainingRecordBytes() / 4 * 3 // The data are written in base64.
	packed, err := next.packWithinLimit(o.TargetStoreID, max(0, min(maxRemovals, r.size+room)))
	if err != nil {
		return err
	}
	if a.Intent == nil {
		a.Intent = &StatusUpdate{Record: o.Record, Condition: o.Condition, Ready: o.Ready, StoreID: o.StatusStoreID}
	}
	a.Intent.Removed = packed
	return nil
}

// IsRemovalsRecorderOf reports whether the owner is the Store that records what is removed from an OpenFGA store.
func (o *Owner) IsRemovalsRecorderOf(storeID string) bool {
	return o.IsStore && storeID != "" && o.phaseInStore(storeID) == here
}

// restoredTuples lists the removed tuples that the store holds again as they were. A tuple that OpenFGA wrote later was written by
// other software.
func (in Input) restoredTuples(evaluations []*Evaluation, claims map[tuple.ID]tupleClaim) map[tuple.ID]RemovedTuple {
	found := map[tuple.ID]RemovedTuple{}
	for _, r := range in.Removals.List {
		written, there := in.Written[r.ID]
		_, claimed := claims[r.ID]
		if there && !claimed && !written.After(r.Written) && (!in.Reserved || !iam.IsIAMObject(r.Object)) {
			found[r.ID] = r
		}
	}
	if len(found) == 0 {
		return nil
	}
	for _, e := range evaluations {
		if e.phase == here && in.Model != nil {
			continue // Such a tuple is written again once the text that declares it is in force.
		}
		for _, v := range e.verdictsInState(Waiting) {
			delete(found, v.ID)
		}
	}
	return found
}

// RemovalsRecordedCondition reports since when a record is complete.
func RemovalsRecordedCondition(r *corev1alpha1.RemovedTuples, generation int64) OwnerCondition {
	since := r.Since.UTC().Format(time.RFC3339)
	if r.Truncated {
		return OwnerCondition{Reason: "Truncated", Generation: generation, Message: "The record of removed tuples begins at " + since +
			", because there was no room for more. After a restore of OpenFGA from an older backup, run `entail tuples undeclared`."}
	}
	return OwnerCondition{OK: true, Reason: "Complete", Generation: generation, Message: "All tuples that were removed since " + since +
		" are recorded. If a restore of OpenFGA brings them back, tuple-sync removes them again."}
}
