package ledger

import (
	"fmt"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

// recorded is where a status keeps the record of tuples: one by one, or packed where they are many. Whoever
// finds both takes them together.
type recorded struct {
	StoreID string
	Tuples  []corev1alpha1.Tuple
	Ledger  *corev1alpha1.Ledger
}

func recordedOfStore(s *corev1alpha1.Store) recorded {
	return recorded{s.Status.ManagedTuplesStoreID, s.Status.ManagedTuples, s.Status.Ledger}.at(s.Status.StoreID)
}

func recordedOfModel(m *corev1alpha1.AuthorizationModel, target string) recorded {
	return recorded{m.Status.StoreID, m.Status.ManagedTuples, m.Status.Ledger}.at(target)
}

// at names the store of a record. One without is from before there was such a field: then it speaks of
// the store that the object belongs to. Of nothing there is no store.
func (r recorded) at(target string) recorded {
	switch {
	case r.empty():
		r.StoreID = ""
	case r.StoreID == "":
		r.StoreID = target
	}
	return r
}

func (r recorded) empty() bool { return len(r.Tuples) == 0 && r.Ledger == nil }

// record reads it. Of what cannot be read only the store is known.
func (r recorded) record(p *packs) (plan.Record, error) {
	if r.empty() {
		return plan.Record{}, nil
	}
	out := plan.Record{StoreID: r.StoreID, Tuples: tuple.ParseAll(r.Tuples)}
	if r.Ledger == nil {
		return out, nil
	}
	if r.Ledger.Encoding != corev1alpha1.EncodingZstd {
		return out, fmt.Errorf("status.ledger: no such encoding: %q", r.Ledger.Encoding)
	}
	packed, err := p.unpack(r.Ledger.Data)
	if err != nil {
		return out, fmt.Errorf("status.ledger: %w", err)
	}
	if beside := slices.Concat(out.Tuples, tuple.ParseAll(r.Ledger.Pending)); len(beside) > 0 {
		packed = tuple.Sorted(slices.Concat(packed, beside))
	}
	out.Tuples = packed
	return out, nil
}

// keep is r when it is to list tuples instead. While they are written, what is added to a long list is
// kept beside it.
func (r recorded) keep(p *packs, storeID string, tuples []tuple.Tuple, writing bool) (recorded, error) {
	if len(tuples) <= corev1alpha1.LongRecord {
		return recorded{StoreID: storeID, Tuples: declared(tuples)}, nil
	}
	next := corev1alpha1.Ledger{Revision: 1, Encoding: corev1alpha1.EncodingZstd}
	if r.Ledger != nil && len(r.Tuples) == 0 && r.StoreID == storeID {
		next.Revision += r.Ledger.Revision
		if has, err := r.record(p); err == nil && slices.Equal(has.Tuples, tuples) && (writing || len(r.Ledger.Pending) == 0) {
			return recorded{StoreID: storeID, Ledger: r.Ledger}, nil
		}
		if packed, err := p.unpack(r.Ledger.Data); err == nil && writing {
			added, ok := without(tuples, packed)
			if next.Data, next.Pending = r.Ledger.Data, declared(added); ok && len(added) <= corev1alpha1.LongRecord {
				return recorded{StoreID: storeID, Ledger: &next}, nil
			}
		}
	}
	var err error
	next.Data, err = p.pack(tuples)
	next.Pending = nil
	return recorded{StoreID: storeID, Ledger: &next}, err
}

func declared(tuples []tuple.Tuple) []corev1alpha1.Tuple {
	list := make([]corev1alpha1.Tuple, len(tuples))
	for i, t := range tuples {
		list[i] = t.Declared()
	}
	return list
}

// without is what of all is not in some; false if some are not in all.
func without(all, some []tuple.Tuple) (rest []tuple.Tuple, ok bool) {
	has := make(map[tuple.Tuple]struct{}, len(some))
	for _, t := range some {
		has[t] = struct{}{}
	}
	for _, t := range all {
		if _, there := has[t]; !there {
			rest = append(rest, t)
		}
	}
	return rest, len(all)-len(rest) == len(has)
}
