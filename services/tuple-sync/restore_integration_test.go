//go:build integration

package tuplesync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	ofStore   = "document:store#viewer@user:1"
	ofModule  = "document:module#viewer@user:1"
	ofDeleted = "document:deleted#viewer@user:1"
	rewritten = "document:rewritten#viewer@user:1"
)

// storeWithRemovedTuples is a Store from which four tuples were removed since a backup was made. Other software wrote one of them again.
func storeWithRemovedTuples(t *testing.T) (b *testEnv, r *testenv.RunningService, id string, restore func()) {
	t.Helper()
	b = newTestEnv(t)
	b.store("demo", first, ofStore, rewritten)
	id = b.synced("demo", docs)
	b.write(id, []string{foreign}, nil)
	b.StartReflector()
	r = b.serve()
	b.module("one", "demo", second, ofModule)
	b.module("two", "demo", ofDeleted)
	b.await(models, "two", "Synced")
	b.awaitTuples(id, first, second, foreign, ofStore, ofModule, ofDeleted, rewritten)
	b.await(stores, "demo", "Synced")
	b.AwaitCondition(stores, "demo", corev1alpha1.RemovalsRecorded, "Complete")
	b.AwaitNoCalls()
	restore = b.OpenFGA.Backup(t)
	b.store("demo", first)
	b.module("one", "demo", second)
	b.Delete(models, "two")
	b.AwaitGone(models, "two")
	b.await(models, "one", "Synced")
	b.await(stores, "demo", "Synced")
	b.awaitTuples(id, first, second, foreign)
	b.AwaitNoCalls()
	return b, r, id, restore
}

func TestRestoredOpenFGADoesNotKeepRevokedTuple(t *testing.T) {
	back := []string{ofStore, ofModule, ofDeleted, rewritten}
	t.Run("noticed at the start", func(t *testing.T) {
		b, r, id, restore := storeWithRemovedTuples(t)
		r.Stop()
		restore()
		b.awaitTuples(id, append(slices.Clone(back), first, second, foreign)...)
		b.write(id, nil, []string{rewritten})
		b.write(id, []string{rewritten}, nil) // Other software writes it after the restore.
		r = b.serve()
		b.awaitTuples(id, first, second, foreign, rewritten)
		b.awaitEvent(stores, "demo", "TuplesRestored")
		if n := r.MetricValue(t, "entail_tuples_restored_total"); n != 3 {
			t.Errorf("got %v restored tuples, want 3", n)
		}
	})
	t.Run("noticed at a resync", func(t *testing.T) {
		b, r, id, restore := storeWithRemovedTuples(t)
		restore()
		b.awaitTuples(id, append(slices.Clone(back), first, second, foreign)...)
		testenv.Eventually(t, soon, func() error { return restoredAre(t.Context(), clientOf(r), back) })
		b.RequestResync(topology.TupleSync)
		b.awaitTuples(id, first, second, foreign)
		b.awaitEvent(stores, "demo", "TuplesRestored")
		b.CheckNoWrites("another resync", func() { b.RequestResync(topology.TupleSync) })
	})
	t.Run("but what is declared again stays", func(t *testing.T) {
		b, r, id, restore := storeWithRemovedTuples(t)
		r.Stop()
		restore()
		b.module("three", "demo", ofModule)
		b.serve()
		b.await(models, "three", "Synced")
		b.awaitTuples(id, first, second, foreign, ofModule)
	})
}

// restoredAre compares the undeclared tuples that were restored.
func restoredAre(ctx context.Context, client tuplev1connect.TupleServiceClient, want []string) error {
	list, err := client.ListUndeclaredTuples(ctx, &tuplev1.ListUndeclaredTuplesRequest{Store: "demo"})
	if err != nil {
		return err
	}
	var got []string
	for _, u := range list.GetTuples() {
		if k := u.GetKey(); u.GetFate() == tuplev1.Fate_FATE_TO_BE_REMOVED && strings.HasPrefix(u.GetMessage(), "Restored: it was removed on 20") {
			got = append(got, fmt.Sprintf("%s#%s@%s", k.GetObject(), k.GetRelation(), k.GetUser()))
		}
	}
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		return fmt.Errorf("restored are %v, want %v", got, want)
	}
	return nil
}

func TestRemovalIsRecordedBeforeItIsMade(t *testing.T) {
	b := newTestEnv(t)
	b.store("demo")
	id := b.synced("demo", docs)
	b.StartReflector()
	r := b.serve()
	b.module("one", "demo", first, second)
	b.await(models, "one", "Synced")
	b.AwaitNoCalls()
	restore := b.OpenFGA.Backup(t)
	b.OpenFGA.FailBefore(func(_ context.Context, op string) error {
		if op == "Write" {
			return errCut
		}
		return nil
	})
	before := b.Kube.WritesByOp()
	b.module("one", "demo", first)
	testenv.Eventually(t, soon, func() error {
		f, err := b.get(stores, "demo")
		if err == nil && (f.Status.RemovedTuples == nil || len(f.Status.RemovedTuples.Data) == 0) {
			err = errors.New("the removal is not recorded yet")
		}
		return err
	})
	r.Stop()
	b.awaitTuples(id, first, second)
	b.mend()
	r = b.serve()
	b.await(models, "one", "Synced")
	b.awaitTuples(id, first)
	b.AwaitNoCalls()
	for op, n := range testenv.SubtractCounts(before, b.Kube.WritesByOp()) {
		if strings.Contains(op, "/stores/demo/status") && n != 1 {
			t.Errorf("%s: got %d writes for one removal, want 1", op, n)
		}
	}
	r.Stop()
	restore()
	b.serve()
	b.awaitTuples(id, first)
}
