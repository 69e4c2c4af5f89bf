//go:build integration

package tuplesync_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

//nolint:gochecknoglobals // Fixtures that no test changes.
var (
	stores = kinds.Stores()
	models = kinds.AuthorizationModels()
)

const (
	foreign = "document:foreign#viewer@user:somebody"
	first   = "document:1#viewer@user:1"
	second  = "document:2#viewer@user:2"
	third   = "folder:1#reader@user:1"
)

// demo is a bed with a service and the Store "demo".
func demo(t *testing.T, texts ...string) (*testEnv, string) {
	t.Helper()
	b := newTestEnv(t)
	b.store("demo", texts...)
	id := b.synced("demo", docs)
	b.write(id, []string{foreign}, nil)
	b.StartReflector()
	b.serve()
	return b, id
}

func TestManyTuplesAreWrittenAndDeletedInChunks(t *testing.T) {
	b, id := demo(t, many(0, 250)...)
	b.awaitTuples(id, append(many(0, 250), foreign)...)
	if message := b.await(stores, "demo", "Synced"); message != "The store holds all tuples: 250." {
		t.Errorf("the message is %q", message)
	}
	if n := b.OpenFGA.WritesByOp()["Write"]; n != 3 {
		t.Errorf("writing 250 took %d calls", n)
	}
	f, err := b.get(stores, "demo")
	if err != nil || len(f.Status.ManagedTuples) != 250 || f.Status.TupleCount != 250 || f.Status.ManagedTuplesStoreID != id ||
		!slices.Contains(f.Finalizers, corev1alpha1.TuplesFinalizer) {
		t.Errorf("recorded are %d tuples (count %d) in store %s, held by %v, %v",
			len(f.Status.ManagedTuples), f.Status.TupleCount, f.Status.ManagedTuplesStoreID, f.Finalizers, err)
	}
	b.store("demo", many(101, 149)...)
	b.awaitTuples(id, append(many(101, 149), foreign)...)
	b.await(stores, "demo", "Synced")
	if n := b.OpenFGA.WritesByOp()["Write"]; n != 5 {
		t.Errorf("deleting 101 took %d calls", n-3)
	}
}

func TestInvalidTupleIsNotWrittenAndDoesNotBlockOthers(t *testing.T) {
	good := many(0, 50)
	b, id := demo(t, append(slices.Clone(good), third)...)
	b.awaitTuples(id, append(slices.Clone(good), foreign)...)
	message := b.await(stores, "demo", "Invalid")
	if !strings.Contains(message, "1 of 51 tuples") || !strings.Contains(message, "folder:1#reader@user:1: type 'folder' not found") {
		t.Errorf("the message is %q", message)
	}
	b.AwaitNoCalls()
	if now := b.OpenFGA.CallsByOp(); now["Write"] != 1 {
		t.Errorf("calls went on: %v", now)
	}
	b.modelled("demo", id, folders)
	b.await(stores, "demo", "Synced")
	b.awaitTuples(id, append(slices.Clone(good), third, foreign)...)
}

func TestTuplesFollowStoreID(t *testing.T) {
	b, id := demo(t, first)
	b.module("one", "demo", second)
	b.awaitTuples(id, first, second, foreign)
	b.await(models, "one", "Synced")
	again := b.synced("demo", docs)
	b.awaitTuples(again, first, second)
	b.awaitTuples(id, foreign)
	b.await(stores, "demo", "Synced")
	b.await(models, "one", "Synced")
}

func TestDeletedStoreKeepsTuplesUntilLastModuleIsDeleted(t *testing.T) {
	b, id := demo(t, first)
	b.module("one", "demo", second)
	b.await(models, "one", "Synced")
	b.await(stores, "demo", "Synced")
	b.Delete(stores, "demo")
	b.AwaitNoCalls()
	b.awaitTuples(id, first, second, foreign)
	b.Delete(models, "one")
	b.AwaitGone(models, "one")
	b.AwaitGone(stores, "demo")
	b.awaitTuples(id, foreign)
}

func TestTupleSyncRemovesTuplesOfModuleWhoseStoreIsGone(t *testing.T) {
	for name, lost := range map[string]bool{"whose OpenFGA store is there": false, "whose OpenFGA store is gone": true} {
		t.Run(name, func(t *testing.T) {
			b, id := demo(t)
			b.module("one", "demo", first)
			b.await(models, "one", "Synced")
			b.await(stores, "demo", "Synced")
			b.Delete(stores, "demo") // Without tuples of its own, it has no finalizer.
			b.AwaitGone(stores, "demo")
			b.merged("one")
			b.await(models, "one", "StoreNotFound")
			if lost {
				if err := b.hand.DeleteStore(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			b.Delete(models, "one")
			b.AwaitGone(models, "one")
			if !lost {
				b.awaitTuples(id, foreign)
			}
		})
	}
}

func TestExternallyRemovedTupleIsRestored(t *testing.T) {
	b, id := demo(t, many(0, 120)...)
	b.await(stores, "demo", "Synced")
	b.write(id, []string{second}, many(50, 3))
	b.AwaitNoCalls()
	b.RequestResync(topology.TupleSync)
	b.awaitTuples(id, append(many(0, 120), foreign, second)...)
	b.await(stores, "demo", "Synced")
	b.CheckNoWrites("another resync", func() { b.RequestResync(topology.TupleSync) })
}

func TestPendingTuplesAreWrittenWithModel(t *testing.T) {
	b, id := demo(t)
	b.module("one", "demo", first, third)
	if message := b.await(models, "one", "Pending"); !strings.Contains(message, "1 of 2 tuples wait for the model: folder:1#reader@user:1") {
		t.Errorf("the message is %q", message)
	}
	b.awaitTuples(id, first, foreign)
	b.modelled("demo", id, folders)
	b.awaitTuples(id, first, third, foreign)
	b.await(models, "one", "Synced")
	b.expectResult(models, "one", eventv1.Outcome_OUTCOME_APPLIED)
}

func TestSyncedStoreDoesNotNeedWrites(t *testing.T) {
	b := newTestEnv(t)
	b.store("demo", many(0, 150)...)
	id := b.synced("demo", docs)
	m := b.StartReflector()
	r := b.serve()
	b.module("one", "demo", first, third)
	b.module("lost", "nowhere", first)
	b.merged("one")
	b.merged("lost")
	b.awaitTuples(id, append(many(0, 150), first)...)
	b.await(stores, "demo", "Synced")
	b.await(models, "one", "Invalid")
	b.await(models, "lost", "StoreNotFound")
	b.AwaitNoCalls()
	b.CheckNoWrites("a replay", m.Replay)
	b.CheckNoWrites("a resync", func() { b.RequestResync(topology.TupleSync) })
	b.CheckNoWrites("a restart with everything anew", func() {
		r.Stop()
		if err := b.JS.DeleteConsumer(t.Context(), topology.Changes, topology.TupleSync); err != nil {
			t.Fatal(err)
		}
		b.serve()
		b.AwaitNoCalls()
		b.RequestResync(topology.TupleSync)
	})
}

func TestInvalidTuplesAreReportedAsRejected(t *testing.T) {
	b, _ := demo(t, first, second, third)
	b.await(stores, "demo", "Invalid")
	b.expectResult(stores, "demo", eventv1.Outcome_OUTCOME_REJECTED)
}

// expectResult waits for the service's word on an object.
func (b *testEnv) expectResult(kind kinds.Kind, name string, want eventv1.Outcome) {
	b.T.Helper()
	stream, err := b.JS.Stream(b.T.Context(), topology.Results)
	if err != nil {
		b.T.Fatal(err)
	}
	subject := topology.ResultSubject(topology.TupleSync, keyOf(kind, name))
	testenv.Eventually(b.T, soon, func() error {
		msg, err := stream.GetLastMsgForSubject(b.T.Context(), subject)
		if err != nil {
			return err
		}
		return outcomeIs(msg, want)
	})
}

func outcomeIs(msg *jetstream.RawStreamMsg, want eventv1.Outcome) error {
	var r eventv1.ResourceResult
	if err := proto.Unmarshal(msg.Data, &r); err != nil {
		return err
	}
	if r.GetOutcome() != want || want != eventv1.Outcome_OUTCOME_APPLIED && r.GetMessage() == "" {
		return fmt.Errorf("the result is %v, want %s", &r, want)
	}
	return nil
}
