package derived

import (
	"slices"
	"testing"
	"time"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func TestLostStoreIsRefilled(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	b.openFGA.tuples, b.openFGA.list, b.openFGA.gone = nil, nil, true
	b.ask(Key{sort: tail})
	if b.try(3); len(b.dirty) == 0 {
		t.Error("nobody waits for another")
	}
	b.openFGA.gone = false // As store-sync makes one.
	b.put(kinds.Stores(), "iam", &corev1alpha1.Store{Spec: adoptingStore(), Status: corev1alpha1.StoreStatus{StoreID: "another", AuthorizationModelID: "M"}})
	b.work()
	b.inStep("made anew,")
}

func TestEmptiedStoreIsRefilled(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	b.openFGA.tuples, b.openFGA.list = nil, nil // Not a word of it in the list of changes.
	if err := b.pass(Key{sort: tail}, true); err != nil {
		t.Fatal(err)
	}
	b.work()   // All of it is read,
	b.follow() // and looked at.
	b.inStep("after a resync")
}

// Streams of kinds are independent: the result is complete in any order of arrival.
func TestBindingBeforeReferencedObjects(t *testing.T) {
	whole := newReconcilerEnv(t)
	whole.peopled()
	of := []kinds.Kind{
		kinds.PolicyBindings(), kinds.GroupMemberships(), kinds.IAMRoles(), kinds.IAMGroups(), kinds.IAMUsers(), kinds.ProtectedResources(),
	}
	for i := range of {
		b := newReconcilerEnv(t)
		b.openFGA, b.api, b.gone = &simulatedOpenFGA{fail: b.openFGA.fail}, whole.api, map[event.Key]event.Change{}
		all := whole.api
		b.api = map[event.Key]event.Change{}
		b.open()
		b.api = all
		b.take(all[b.keyOf(kinds.Stores(), "iam")])
		for _, kind := range slices.Concat(of[i:], of[:i]) {
			for k, c := range all {
				if k.GroupResource == kind.GroupResource {
					b.take(c)
				}
			}
			b.work()
		}
		b.inStep(of[i].Kind + " first,")
	}
}

// A replica of OpenFGA that lags may not find a model for a moment. Pending removals survive that.
func TestMissingModelKeepsReplica(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	model := b.model
	b.model = nil
	b.drop(kinds.PolicyBindings(), "bob")
	b.try(20)
	b.model = model
	b.work()
	b.inStep("with its model again,")
	if b.model = nil; !fault.IsUnavailable(b.pass(Key{sort: tail}, false)) {
		t.Error("the tail ends for ever")
	}
}

// However long a read of the whole store takes, no revocation waits for it.
func TestHangingReadOfStoreDoesNotBlockRevocation(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	b.openFGA.begun, b.openFGA.reading = make(chan struct{}), make(chan struct{})
	read := make(chan error)
	if err := b.pass(Key{sort: tail}, true); err != nil {
		t.Fatal(err)
	}
	delete(b.dirty, Key{sort: whole})
	go func() { read <- b.compareStoreWithReplica(t.Context()) }()
	<-b.openFGA.begun
	b.drop(kinds.PolicyBindings(), "bob")
	b.follow()
	b.inStep("while everything is read,")
	close(b.openFGA.reading)
	if err := <-read; err != nil {
		t.Fatal(err)
	}
}

// No revocation waits for a slow rereadRecentChanges either.
func TestHangingReadOfChangesDoesNotBlockRevocation(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	b.follow()
	begun, read, done := make(chan struct{}), make(chan struct{}), make(chan error)
	b.copy.read += time.Hour // However slow the machine is, it is fresh.
	b.openFGA.stumble = func(string) error { close(begun); <-read; return nil }
	go func() { done <- b.copy.catchUp(t.Context(), "store") }()
	<-begun
	b.openFGA.stumble = nil
	b.drop(kinds.PolicyBindings(), "bob")
	b.work()
	b.inStep("while changes are read,")
	close(read)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// What was loaded anew in between counts, although the bus then tells of what was before.
func TestRegistrationIsRecomputedAfterReload(t *testing.T) {
	b := newReconcilerEnv(t)
	k := b.keyOf(kinds.ProtectedResources(), "docs")
	if b.State.updateRegistration(k) {
		t.Error("nothing has changed")
	}
	before := b.State.revision.Load()
	b.State.judged[k] = "" // As one that is not to be seen while it is loaded.
	gone := b.keyOf(kinds.ProtectedResources(), "oaks")
	b.State.judged[gone] = "what it was"
	b.State.recomputeRegistrations()
	if was := b.State.judged[gone]; was != "" {
		t.Error("what is loaded no more would be nothing new if it came back as it was")
	}
	if b.State.revision.Load() == before {
		t.Error("what was loaded is taken to be what was known")
	}
	if b.State.updateRegistration(k) {
		t.Error("what was loaded counts again once somebody tells of it")
	}
	b.put(kinds.ProtectedResources(), "docs", &iamv1alpha1.ProtectedResource{Spec: protect(docType, "docs").Spec})
	if b.State.revision.Load() == before+1 {
		t.Error("another generation is not noticed")
	}
}
