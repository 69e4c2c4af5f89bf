package declared

import (
	"fmt"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// statusRecord is the record of tuples as a status stores it: one by one, or packed if they are many. A reader combines
// both.
type statusRecord struct {
	StoreID string
	Tuples  []corev1alpha1.Tuple
	Ledger  *corev1alpha1.Ledger
}

func storedRecordOfStore(s *corev1alpha1.Store) statusRecord {
	return statusRecord{s.Status.ManagedTuplesStoreID, s.Status.ManagedTuples, s.Status.Ledger}.withDefaultStore(s.Status.StoreID)
}

func storedRecordOfModel(m *corev1alpha1.AuthorizationModel, target string) statusRecord {
	return statusRecord{m.Status.StoreID, m.Status.ManagedTuples, m.Status.Ledger}.withDefaultStore(target)
}

// withDefaultStore fills in the store of a record. A record without a store is from before that field existed, and belongs to target.
// An empty record has no store.
func (r statusRecord) withDefaultStore(target string) statusRecord {
	switch {
	case r.isEmpty():
		r.StoreID = ""
	case r.StoreID == "":
		r.StoreID = target
	}
	return r
}

func (r statusRecord) isEmpty() bool { return len(r.Tuples) == 0 && r.Ledger == nil }

// decodeRecord decodes the record. On an error it is incomplete, but its store is known.
func (r statusRecord) decodeRecord(p *tupleListCache) (plan.TupleRecord, error) {
	if r.isEmpty() {
		return plan.TupleRecord{}, nil
	}
	out := plan.TupleRecord{StoreID: r.StoreID, Tuples: tuple.ParseDeclaredList(r.Tuples)}
	if r.Ledger == nil {
		return out, nil
	}
	if r.Ledger.Encoding != corev1alpha1.EncodingZstd {
		return out, fmt.Errorf("status.ledger: no such encoding: %q", r.Ledger.Encoding)
	}
	packed, err := p.unpackTuples(r.Ledger.Data)
	if err != nil {
		return out, fmt.Errorf("status.ledger: %w", err)
	}
	if beside := slices.Concat(out.Tuples, tuple.ParseDeclaredList(r.Ledger.Pending)); len(beside) > 0 {
		packed = tuple.SortedUnique(slices.Concat(packed, beside))
	}
	out.Tuples = packed
	return out, nil
}

// encodeRecord returns the record to store for tuples. While tuples are being written, additions to a long list are stored
// beside it, which avoids packing it again.
func (r statusRecord) encodeRecord(p *tupleListCache, storeID string, tuples []tuple.Tuple, writing bool) (statusRecord, error) {
	if len(tuples) <= corev1alpha1.LongRecord {
		return statusRecord{StoreID: storeID, Tuples: toAPITuples(tuples)}, nil
	}
	next := corev1alpha1.Ledger{Revision: 1, Encoding: corev1alpha1.EncodingZstd}
	if r.Ledger != nil && len(r.Tuples) == 0 && r.StoreID == storeID {
		next.Revision += r.Ledger.Revision
		if has, err := r.decodeRecord(p); err == nil && slices.Equal(has.Tuples, tuples) && (writing || len(r.Ledger.Pending) == 0) {
			return statusRecord{StoreID: storeID, Ledger: r.Ledger}, nil
		}
		if packed, err := p.unpackTuples(r.Ledger.Data); err == nil && writing {
			added, ok := subtractTuples(tuples, packed)
			if next.Data, next.Pending = r.Ledger.Data, toAPITuples(added); ok && len(added) <= corev1alpha1.LongRecord {
				return statusRecord{StoreID: storeID, Ledger: &next}, nil
			}
		}
	}
	var err error
	next.Data, err = p.packTuples(tuples)
	next.Pending = nil
	return statusRecord{StoreID: storeID, Ledger: &next}, err
}

func toAPITuples(tuples []tuple.Tuple) []corev1alpha1.Tuple {
	list := make([]corev1alpha1.Tuple, len(tuples))
	for i, t := range tuples {
		list[i] = t.ToDeclared()
	}
	return list
}

// subtractTuples returns the tuples of all that are not in some. It returns false if some has others.
func subtractTuples(all, some []tuple.Tuple) (rest []tuple.Tuple, ok bool) {
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
