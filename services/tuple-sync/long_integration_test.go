//go:build integration

package tuplesync_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// ledger is the long record of the Store demo.
func (b *testEnv) ledger(count int32) *corev1alpha1.Ledger {
	b.T.Helper()
	f, err := b.get(stores, "demo")
	if err != nil || f.Status.Ledger == nil || len(f.Status.ManagedTuples) > 0 || f.Status.TupleCount != count {
		b.T.Fatalf("recorded are %d tuples one by one, %d in all, the rest in %+v; %v", len(f.Status.ManagedTuples), f.Status.TupleCount, f.Status.Ledger, err)
	}
	return f.Status.Ledger
}

func TestLongRecordIsPacked(t *testing.T) {
	const n = 600
	b := newTestEnv(t)
	b.store("demo", many(0, n)...)
	id := b.synced("demo", docs)
	b.StartReflector()
	r := b.serve()
	b.await(stores, "demo", "Synced")
	first := b.ledger(n)
	if len(first.Data) > 10_000 || len(first.Pending) > 0 {
		t.Errorf("the record takes %d bytes, pending are %v", len(first.Data), first.Pending)
	}
	var cut atomic.Bool
	b.OpenFGA.FailBefore(func(_ context.Context, op string) error {
		if op == "Write" || cut.Load() { // A crash between record and tuples.
			cut.Store(true)
			return errCut
		}
		return nil
	})
	b.store("demo", many(1, n)...) // One more, one less.
	testenv.Eventually(t, soon, func() error {
		f, err := b.get(stores, "demo")
		if err == nil && (f.Status.Ledger == nil || len(f.Status.Ledger.Pending) != 1) {
			err = errors.New("the addition is not recorded yet")
		}
		return err
	})
	r.Stop()
	b.mend()
	b.serve()
	b.await(stores, "demo", "Synced")
	b.awaitTuples(id, many(1, n)...)
	if now := b.ledger(n); now.Revision <= first.Revision || len(now.Pending) > 0 {
		t.Errorf("revision %d, pending are %v", now.Revision, now.Pending)
	}
	b.CheckNoWrites("a resync", func() { b.RequestResync(topology.TupleSync) })
	b.store("demo", many(5, 10)...)
	b.await(stores, "demo", "Synced")
	b.awaitTuples(id, many(5, 10)...)
	if err := b.listed(10); err != nil {
		t.Error(err)
	}
}

// listed wants the record of the Store demo to list so many tuples one by one.
func (b *testEnv) listed(n int) error {
	f, err := b.get(stores, "demo")
	if err == nil && (f.Status.Ledger != nil || len(f.Status.ManagedTuples) != n) {
		err = errors.New("the record is still packed")
	}
	return err
}
