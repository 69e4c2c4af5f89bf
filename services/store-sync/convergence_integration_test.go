//go:build integration

package storesync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	storesync "github.com/entail-dev/entail/services/store-sync"
)

func TestConflictingModuleIsIsolatedUntilFixed(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	b.applyModule("one", "demo", dsl("folder"))
	b.awaitModule("one", "Merged=True/Merged")
	b.applyModule("two", "demo", "module two\n\ntype folder\n  relations\n    define writer: [user]\n")
	b.applyModule("three", "demo", dsl("group"))
	two := b.awaitModule("two", "Merged=False/Rejected")
	if m := messageOf(two.Status.Conditions, corev1alpha1.Merged); !strings.Contains(m, "folder") || !strings.Contains(m, "authorizationmodel/one") {
		t.Errorf("the message does not name the conflict: %q", m)
	}
	b.awaitModule("one", "Merged=True/Merged")
	b.awaitModule("three", "Merged=True/Merged")
	b.await("demo", "ModelSynced=True/ModulesRejected")
	b.expectTypes("user", "document", "folder", "group")
	b.applyModule("two", "demo", dsl("two"))
	b.awaitModule("two", "Merged=True/Merged")
	b.await("demo", "ModelSynced=True/Merged")
	b.expectTypes("user", "document", "folder", "group", "two")
}

func TestBrokenCoreModuleKeepsLastModel(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	b.applyModule("docs", "demo", dsl("folder"))
	b.awaitModule("docs", "Merged=True/Merged")
	good := b.await("demo", "ModelSynced=True/Merged").Status.AuthorizationModelID
	b.applyStore("demo", func(s *corev1alpha1.StoreSpec) {
		s.CoreModule = "module core\n\ntype user\n  relations\n    define a [nobody]\n"
	})
	s := b.await("demo", "StoreSynced=True/Created", "ModelSynced=False/InvalidCore", "ModulesInSync=False/LastGoodLive")
	b.expectResult("demo", eventv1.Outcome_OUTCOME_REJECTED)
	b.awaitModule("docs", "Merged=True/Merged")
	b.expectTypes("user", "document", "folder")
	if s.Status.AuthorizationModelID != good {
		t.Errorf("status names model %s, the last good one is %s", s.Status.AuthorizationModelID, good)
	}
	b.expectEvents("ModuleRejected")
	b.applyStore("demo")
	b.await("demo", "ModelSynced=True/Merged")
	b.AwaitNoCalls()
	if n := b.OpenFGA.WritesByOp()["WriteAuthorizationModel"]; n > 2 {
		t.Errorf("%d models were written", n)
	}
}

func TestInvalidInputGetsConditionAndIsNotRetried(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve(func(c *storesync.Config) { c.Limits.Types = 4 })
	b.applyStore("ab")
	b.applyStore("empty", func(s *corev1alpha1.StoreSpec) { s.CoreModule = "" })
	b.applyStore("large")
	b.applyModule("lost", "nowhere", dsl("folder"))
	b.applyModule("odd", "empty", dsl("folder"))
	for i := range 3 {
		b.applyModule(fmt.Sprintf("large-%d", i), "large", dsl(fmt.Sprintf("part%d", i)))
	}
	s := b.await("ab", "StoreSynced=False/InvalidName")
	if m := messageOf(s.Status.Conditions, corev1alpha1.StoreSynced); !strings.Contains(m, "3 to 64") {
		t.Errorf("the message does not tell the rule: %q", m)
	}
	b.await("empty", "StoreSynced=True/Created", "ModelSynced=False/InvalidCore")
	b.await("large", "ModulesInSync=False/Rejected")
	m := messageOf(b.awaitModule("large-2", "Merged=False/LimitExceeded").Status.Conditions, corev1alpha1.Merged)
	if !strings.Contains(m, "5 types, of at most 4") {
		t.Errorf("the message does not name the counts: %q", m)
	}
	b.awaitModule("lost", "Merged=False/StoreNotFound")
	b.awaitModule("odd", "Merged=False/InvalidCore")
	b.expectResult("ab", eventv1.Outcome_OUTCOME_REJECTED)
	b.AwaitNoCalls()
	before := b.OpenFGA.Writes()
	_, writes := b.since()
	b.AwaitNoCalls()
	if n := b.OpenFGA.Writes() - before; n != 0 || writes() != 0 {
		t.Errorf("something is tried again and again: %d calls, %d writes", n, writes())
	}
	b.applyStore("nowhere")
	b.awaitModule("lost", "Merged=True/Merged")
}

func TestDeletionRemovesDependentsThenTuplesThenStore(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	b.applyModule("docs", "demo", dsl("folder"))
	b.awaitModule("docs", "Merged=True/Merged")
	b.patch(fmt.Sprintf(`{"metadata":{"finalizers":[%q,%q]}}`, corev1alpha1.StoreFinalizer, corev1alpha1.TuplesFinalizer))
	b.Delete(kinds.Stores(), "demo")
	s := b.await("demo", "Deleting=True/Blocked")
	if m := messageOf(s.Status.Conditions, corev1alpha1.Deleting); !strings.Contains(m, "authorizationmodel/docs") {
		t.Errorf("the message does not name the dependent: %q", m)
	}
	b.expectResult("demo", eventv1.Outcome_OUTCOME_PENDING)
	b.Delete(kinds.AuthorizationModels(), "docs")
	b.await("demo", "Deleting=True/WaitingForTuples")
	if ids := b.named("demo"); len(ids) != 1 {
		t.Errorf("OpenFGA has %v while tuples are there", ids)
	}
	b.patch(fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, corev1alpha1.StoreFinalizer))
	b.AwaitGone(kinds.Stores(), "demo")
	if ids := b.named("demo"); len(ids) != 0 {
		t.Errorf("OpenFGA still has %v", ids)
	}
	b.expectResult("demo", eventv1.Outcome_OUTCOME_APPLIED)
	b.AwaitNoCalls()
	if n := b.OpenFGA.WritesByOp()["DeleteStore"]; n != 1 {
		t.Errorf("DeleteStore was called %d times", n)
	}
}

func TestRetainKeepsOpenFGAStore(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.applyStore("demo", func(s *corev1alpha1.StoreSpec) { s.DeletionPolicy = corev1alpha1.DeletionRetain })
	id := b.await("demo", "ModelSynced=True/Merged").Status.StoreID
	b.Delete(kinds.Stores(), "demo")
	b.AwaitGone(kinds.Stores(), "demo")
	b.AwaitNoCalls()
	if ids := b.named("demo"); !slices.Equal(ids, []string{id}) {
		t.Errorf("OpenFGA has %v, want %s kept", ids, id)
	}
	b.applyStore("demo")
	if s := b.await("demo", "StoreSynced=True/Adopted", "ModelSynced=True/Merged"); s.Status.StoreID != id {
		t.Errorf("the Store made again has %s, want %s", s.Status.StoreID, id)
	}
}

func TestOpenFGAOutageDoesNotLoseChange(t *testing.T) {
	b := newTestEnv(t)
	b.OpenFGA.Stop()
	b.StartReflector()
	b.serve()
	b.applyStore("early")
	testenv.Eventually(t, soon, func() error {
		if !slices.Contains(b.store("early").Finalizers, corev1alpha1.StoreFinalizer) {
			return errors.New("nobody holds the Store yet")
		}
		return nil
	})
	b.expectResult("early", eventv1.Outcome_OUTCOME_RETRYING)
	b.OpenFGA.Start(t)
	b.await("early", "ModelSynced=True/Merged")
	b.OpenFGA.Stop()
	b.applyStore("late")
	b.applyModule("docs", "early", dsl("folder"))
	b.Delete(kinds.Stores(), "early")
	b.await("early", "Deleting=True/Blocked")
	b.OpenFGA.Start(t)
	b.await("late", "StoreSynced=True/Created", "ModelSynced=True/Merged")
	b.Delete(kinds.AuthorizationModels(), "docs")
	b.AwaitGone(kinds.Stores(), "early")
	if ids := b.named("early"); len(ids) != 0 {
		t.Errorf("OpenFGA still has %v", ids)
	}
	stream, err := b.JS.Stream(t.Context(), topology.DeadLetters)
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n != 0 {
		t.Errorf("%d messages were given up", n)
	}
}

func TestForeignModelIsReplaced(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	s := b.await("demo", "ModelSynced=True/Merged")
	b.AwaitNoCalls()
	latest, err := b.hand.ReadLatestModel(t.Context(), s.Status.StoreID)
	if err != nil {
		t.Fatal(err)
	}
	latest.TypeDefinitions = latest.GetTypeDefinitions()[:1]
	for _, d := range latest.GetTypeDefinitions() {
		d.Relations, d.Metadata = nil, nil
	}
	if _, err := b.hand.WriteModel(t.Context(), s.Status.StoreID, latest); err != nil {
		t.Fatal(err)
	}
	b.RequestResync(topology.StoreSync)
	testenv.Eventually(t, soon, func() error {
		if got := b.types(); len(got) != 2 {
			return fmt.Errorf("types are %v", got)
		}
		return nil
	})
}

func TestInvalidStoreIDIsReplaced(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	id := b.await("demo", "ModelSynced=True/Merged").Status.StoreID
	b.AwaitNoCalls()
	b.patch(`{"status":{"storeId":"by hand"}}`, "status")
	testenv.Eventually(t, soon, func() error {
		if got := b.store("demo").Status.StoreID; got != id {
			return fmt.Errorf("status names %q, want %s", got, id)
		}
		return nil
	})
	if ids := b.named("demo"); len(ids) != 1 {
		t.Errorf("OpenFGA has %v", ids)
	}
}

// Only the pass itself holds the id of a new OpenFGA store before the status records it. If the Store vanishes then,
// the OpenFGA store must not stay behind, and a later Store must not get it.
func TestDeletedStoreWithUnrecordedIDIsCleanedUp(t *testing.T) {
	b := newTestEnv(t)
	vanish := sync.OnceFunc(func() {
		b.patch(`{"metadata":{"finalizers":null}}`)
		b.Delete(kinds.Stores(), "demo")
		b.AwaitGone(kinds.Stores(), "demo")
	})
	b.OpenFGA.FailAfter(func(_ context.Context, op string) error {
		if op == "CreateStore" {
			vanish()
		}
		return nil
	})
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	testenv.Eventually(t, soon, func() error {
		if calls, ids := b.OpenFGA.CallsByOp(), b.named("demo"); calls["CreateStore"] == 0 || len(ids) > 0 {
			return fmt.Errorf("after the calls %v OpenFGA has %v", calls, ids)
		}
		return nil
	})
	b.AwaitNoCalls()
	if ids := b.named("demo"); len(ids) > 0 {
		t.Errorf("OpenFGA has %v", ids)
	}
	b.applyStore("demo")
	s := b.await("demo", "StoreSynced=True/Created", "ModelSynced=True/Merged")
	if ids := b.named("demo"); len(ids) != 1 || ids[0] != s.Status.StoreID {
		t.Errorf("OpenFGA has %v, status names %s", ids, s.Status.StoreID)
	}
}

func TestOpenFGAStoreWithOtherNameIsReported(t *testing.T) {
	b := newTestEnv(t)
	id, err := b.hand.CreateStore(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	b.applyStore("demo")
	b.patch(fmt.Sprintf(`{"status":{"storeId":%q}}`, id), "status")
	b.StartReflector()
	b.serve()
	s := b.await("demo", "ModelSynced=True/Merged", "NameInSync=False/Unsupported")
	if message := messageOf(s.Status.Conditions, corev1alpha1.NameInSync); !strings.Contains(message, `"other"`) {
		t.Errorf("it is told: %s", message)
	}
	if ids := b.named("demo"); s.Status.StoreID != id || len(ids) > 0 {
		t.Errorf("status names %s, want %s; OpenFGA has %v, too", s.Status.StoreID, id, ids)
	}
	b.expectTypes("user", "document")
	b.AwaitNoCalls()
	b.CheckNoWrites("a pass over a Store of another name", func() { b.patch(`{"metadata":{"labels":{"look":"again"}}}`) })
}
