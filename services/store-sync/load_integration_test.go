//go:build integration

package storesync_test

import (
	"fmt"
	"strings"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// part returns the name of the i-th of many modules and of its type.
func part(i int) string { return fmt.Sprintf("part%02d", i) }

// wide returns a module whose model takes about as many bytes.
func wide(name string, bytes int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "module %s\n\ntype %s\n  relations\n", name, name)
	for i := 0; bytes > 0; i++ {
		fmt.Fprintf(&text, "    define relation_of_some_length_%05d: [user]\n", i)
		bytes -= 90
	}
	return text.String()
}

func TestTooLargeModelIsReportedAndNotSent(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	for i := range 4 {
		b.applyModule(part(i), "demo", wide(part(i), 60<<10))
	}
	b.awaitModule(part(3), "Merged=True/Merged")
	b.await("demo", "ModelSynced=True/Merged")
	b.AwaitNoCalls()
	good, sent := b.store("demo").Status.AuthorizationModelID, b.OpenFGA.CallsByOp()["WriteAuthorizationModel"]
	b.applyModule("straw", "demo", wide("straw", 60<<10))
	straw := b.awaitModule("straw", "Merged=False/LimitExceeded")
	s := b.await("demo", "ModulesInSync=False/Rejected")
	if why := messageOf(straw.Status.Conditions, corev1alpha1.Merged); !strings.Contains(why, "bytes, of at most 262144") || s.Status.AuthorizationModelID != good {
		t.Errorf("model %s, said is %q", s.Status.AuthorizationModelID, why)
	}
	b.awaitModule(part(3), "Merged=True/Merged")
	b.AwaitNoCalls()
	if n := b.OpenFGA.CallsByOp()["WriteAuthorizationModel"] - sent; n != 0 {
		t.Errorf("%d models were sent", n)
	}
	if latest, err := b.hand.ReadLatestModel(t.Context(), s.Status.StoreID); err != nil || latest.GetId() != good {
		t.Errorf("model %s is live (%v), want %s", latest.GetId(), err, good)
	}
	b.Delete(kinds.AuthorizationModels(), "straw")
	b.await("demo", "ModelSynced=True/Merged")
}

func TestResyncOfSyncedStoresReadsOneModelEach(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	r := b.serve()
	const stores = 5
	for i := range stores {
		name := fmt.Sprintf("demo%d", i)
		b.applyStore(name, withAccounts)
		b.applyModule(part(i), name, dsl(part(i)))
		b.awaitModule(part(i), "Merged=True/Merged")
	}
	b.AwaitCaughtUp(topology.StoreSync)
	b.AwaitNoCalls()
	r.Stop()
	calls, writes := b.since()
	// A model does not prove that its store exists: OpenFGA serves the models of deleted stores.
	made := func(lists, reads int) func() error {
		return func() error {
			if got := calls(); got["ListStores"] != lists || got["ReadAuthorizationModels"] != reads {
				return fmt.Errorf("calls are %v, want %d lists and %d models read", got, lists, reads)
			}
			return nil
		}
	}
	b.serve() // It checks all keys once, and the recent ones a second time after its predecessor's last calls.
	testenv.Eventually(t, soon, made(stores, 2*stores))
	before := b.Kube.CallsByOp()
	b.RequestResync(topology.StoreSync)
	testenv.Eventually(t, soon, made(2*stores, 3*stores))
	b.AwaitNoCalls()
	if err := made(2*stores, 3*stores)(); err != nil || len(calls()) != 2 || writes() != 0 {
		t.Errorf("%v; in all %v, and %d writes", err, calls(), writes())
	}
	for op, n := range b.Kube.CallsByOp() {
		if n != before[op] && !strings.Contains(op, "leases") {
			t.Errorf("%s was asked %d times", op, n-before[op])
		}
	}
}
