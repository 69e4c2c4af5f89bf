package declared

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// numbered returns tuples in order.
func numbered(from, to int) []tuple.Tuple {
	var list []tuple.Tuple
	for i := from; i < to; i++ {
		list = append(list, tuple.Tuple{ID: tuple.ID{Object: fmt.Sprintf("doc:%04d", i), Relation: "viewer", User: "user:1"}})
	}
	return list
}

// packAndUnpack records tuples, and expects to read them again.
func packAndUnpack(t *testing.T, r statusRecord, tuples []tuple.Tuple, writing bool) statusRecord {
	t.Helper()
	next, err := r.encodeRecord(newTupleListCache(), "S", tuples, writing)
	if err != nil {
		t.Fatal(err)
	}
	got, err := next.decodeRecord(newTupleListCache())
	if err != nil || !slices.Equal(got.Tuples, tuples) || got.StoreID != "S" {
		t.Fatalf("%d tuples of store %q are read, want %d; %v", len(got.Tuples), got.StoreID, len(tuples), err)
	}
	return next
}

func TestStatusRecordPacksLongRecord(t *testing.T) {
	short := packAndUnpack(t, statusRecord{}, numbered(0, corev1alpha1.LongRecord), true)
	if short.Ledger != nil || len(short.Tuples) != corev1alpha1.LongRecord {
		t.Errorf("a short one is %+v", short)
	}
	long := packAndUnpack(t, short, numbered(0, 300), true)
	if len(long.Tuples) > 0 || long.Ledger.Revision != 1 || len(long.Ledger.Pending) > 0 {
		t.Errorf("a long one is %+v", long.Ledger)
	}
	same := packAndUnpack(t, long, numbered(0, 300), false)
	if same.Ledger.Revision != 1 {
		t.Errorf("the same is revision %d", same.Ledger.Revision)
	}
	more := packAndUnpack(t, long, numbered(0, 302), true)
	if more.Ledger.Revision != 2 || len(more.Ledger.Pending) != 2 || !bytes.Equal(more.Ledger.Data, long.Ledger.Data) {
		t.Errorf("with two more it is revision %d with %v pending", more.Ledger.Revision, more.Ledger.Pending)
	}
	if again := packAndUnpack(t, more, numbered(0, 302), true); again.Ledger != more.Ledger {
		t.Errorf("the same is revision %d", again.Ledger.Revision)
	}
	done := packAndUnpack(t, more, numbered(1, 302), false)
	if done.Ledger.Revision != 3 || len(done.Ledger.Pending) > 0 {
		t.Errorf("in the end it is revision %d with %v pending", done.Ledger.Revision, done.Ledger.Pending)
	}
	if many := packAndUnpack(t, done, numbered(1, 1000), true); len(many.Ledger.Pending) > 0 {
		t.Errorf("%d are pending", len(many.Ledger.Pending))
	}
	if few := packAndUnpack(t, done, numbered(0, 3), false); few.Ledger != nil || len(few.Tuples) != 3 {
		t.Errorf("a short one is %+v", few)
	}
}

func TestStatusRecordReadsBothForms(t *testing.T) {
	both := packAndUnpack(t, statusRecord{}, numbered(0, 300), false)
	both.Tuples = toAPITuples(numbered(299, 303))
	got, err := both.decodeRecord(newTupleListCache())
	if err != nil || !slices.Equal(got.Tuples, numbered(0, 303)) {
		t.Errorf("read are %d tuples, %v", len(got.Tuples), err)
	}
	if one := packAndUnpack(t, both, numbered(0, 303), false); len(one.Tuples) > 0 {
		t.Errorf("%d tuples are listed", len(one.Tuples))
	}
}

func TestStatusRecordUnreadableIsError(t *testing.T) {
	for name, l := range map[string]corev1alpha1.Ledger{
		"noise": {Encoding: corev1alpha1.EncodingZstd, Data: []byte("noise")}, "another encoding": {Encoding: "xz"},
	} {
		if got, err := (statusRecord{StoreID: "S", Ledger: &l}).decodeRecord(newTupleListCache()); err == nil || got.StoreID != "S" {
			t.Errorf("%s: read is %+v, %v", name, got, err)
		}
	}
}
