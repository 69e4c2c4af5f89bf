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
	"time"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestStoreIsCreatedInOpenFGA(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	b.applyModule("demo-docs", "demo", dsl("folder"))
	b.applyModule("demo-groups", "demo", dsl("group"))
	s := b.await("demo", "StoreSynced=True/Created", "ModelSynced=True/Merged", "NameUnique=True/Unique", "NameInSync=True/InSync")
	b.awaitModule("demo-docs", "Merged=True/Merged")
	b.awaitModule("demo-groups", "Merged=True/Merged")
	b.expectTypes("user", "document", "folder", "group")
	if !slices.Contains(s.Finalizers, corev1alpha1.StoreFinalizer) {
		t.Errorf("finalizers %v lack ours", s.Finalizers)
	}
	b.AwaitNoCalls()
	s = b.store("demo")
	if ids := b.named("demo"); len(ids) != 1 || ids[0] != s.Status.StoreID {
		t.Errorf("OpenFGA has %v, status names %s", ids, s.Status.StoreID)
	}
	latest, err := b.hand.ReadLatestModel(t.Context(), s.Status.StoreID)
	if err != nil || latest.GetId() != s.Status.AuthorizationModelID {
		t.Errorf("latest model is %s (%v), status names %s", latest.GetId(), err, s.Status.AuthorizationModelID)
	}
	if len(s.Status.Modules) != 3 || s.Status.Modules[0].Source != "store/demo" || s.Status.Modules[1].Source != "authorizationmodel/demo-docs" {
		t.Errorf("status.modules is %+v", s.Status.Modules)
	}
	b.expectEvents("StoreCreated", "ModelWritten")
	b.expectResult("demo", eventv1.Outcome_OUTCOME_APPLIED)
}

// expectEvents expects these Kubernetes Events about the Store demo, each once except for ModelWritten.
func (b *testEnv) expectEvents(want ...string) {
	b.T.Helper()
	uid := b.store("demo").UID
	testenv.Eventually(b.T, soon, func() error {
		list, err := b.Objects.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace("default").List(b.T.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		counts := map[string]int{}
		for _, u := range list.Items {
			var e corev1.Event
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &e); err != nil {
				return err
			}
			if e.InvolvedObject.UID == uid {
				counts[e.Reason]++
			}
		}
		for _, reason := range want {
			if counts[reason] == 0 || reason != "ModelWritten" && counts[reason] > 1 {
				return fmt.Errorf("events %v, want %s once", counts, reason)
			}
		}
		return nil
	})
}

func (b *testEnv) expectResult(store string, want eventv1.Outcome) {
	b.T.Helper()
	stream, err := b.JS.Stream(b.T.Context(), topology.Results)
	if err != nil {
		b.T.Fatal(err)
	}
	key := event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: store}
	testenv.Eventually(b.T, soon, func() error {
		msg, err := stream.GetLastMsgForSubject(b.T.Context(), topology.ResultSubject(topology.StoreSync, key))
		if err != nil {
			return err
		}
		var r eventv1.ResourceResult
		if err := proto.Unmarshal(msg.Data, &r); err != nil || r.GetOutcome() != want {
			return fmt.Errorf("result %v (%w), want %v", &r, err, want)
		}
		return nil
	})
}

func TestThousandStoresAreAdoptedOnce(t *testing.T) {
	const names, namesakes = 1000, 130
	b := newTestEnv(t)
	name := func(i int) string { return fmt.Sprintf("store-%04d", i) }
	var declaring sync.WaitGroup
	for lane := range 8 {
		declaring.Go(func() {
			for i := lane; i < names; i += 8 {
				if err := b.declare(name(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	declaring.Wait()
	for range namesakes {
		if _, err := b.hand.CreateStore(t.Context(), name(7)); err != nil {
			t.Fatal(err)
		}
	}
	oldest := b.named(name(7))[0]
	b.StartReflector()
	start := time.Now()
	b.serve()
	testenv.Eventually(t, 9*soon, func() error {
		if n := b.OpenFGA.WritesByOp()["WriteAuthorizationModel"]; n < names {
			return fmt.Errorf("%d of %d models were written", n, names)
		}
		return nil
	})
	t.Logf("%d stores adopted in %s", names, time.Since(start).Round(time.Millisecond))
	b.AwaitNoCalls()
	for _, s := range testenv.ListTyped[corev1alpha1.Store](b.Env, kinds.Stores()) {
		if err := withoutRight(s.Status.Conditions, s.Generation, []string{"StoreSynced=True/Adopted", "ModelSynced=True/Merged"}); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if n := b.OpenFGA.WritesByOp()["CreateStore"]; n != 0 {
		t.Errorf("%d stores were created", n)
	}
	if n := b.OpenFGA.WritesByOp()["WriteAuthorizationModel"]; n != names {
		t.Errorf("%d models were written for %d stores", n, names)
	}
	s := b.await(name(7), "NameUnique=False/SeveralStores")
	if s.Status.StoreID != oldest {
		t.Errorf("adopted %s, the oldest is %s", s.Status.StoreID, oldest)
	}
	if m := messageOf(s.Status.Conditions, corev1alpha1.NameUnique); !strings.Contains(m, fmt.Sprintf("%d more", namesakes)) {
		t.Errorf("NameUnique says %q, without the %d others", m, namesakes)
	}
}

// declare creates a Store whose name an existing OpenFGA store has.
func (b *testEnv) declare(name string) error {
	if _, err := b.hand.CreateStore(b.T.Context(), name); err != nil {
		return err
	}
	s := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": corev1alpha1.GroupVersion.String(), "kind": "Store",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"coreModule": coreV1},
	}}
	_, err := b.ResourceClient(kinds.Stores()).Create(b.T.Context(), s, metav1.CreateOptions{})
	return err
}

// A replica dies between the creation of a store and the record of its id. The standby has observed neither.
func TestNewLeaderFindsUnrecordedStore(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	first := b.serve()
	created := make(chan struct{})
	made := sync.OnceFunc(func() { close(created) })
	b.OpenFGA.FailAfter(func(ctx context.Context, op string) error {
		if op != "CreateStore" {
			return nil
		}
		made()
		<-ctx.Done()
		return fault.Unavailable(ctx.Err())
	})
	b.applyStore("demo")
	<-created
	b.OpenFGA.FailAfter(nil)
	b.serve()
	first.Stop()
	s := b.await("demo", "StoreSynced=True/Adopted", "ModelSynced=True/Merged", "NameUnique=True/Unique")
	b.AwaitNoCalls()
	if ids := b.named("demo"); len(ids) != 1 || ids[0] != s.Status.StoreID || b.OpenFGA.WritesByOp()["CreateStore"] != 1 {
		t.Errorf("OpenFGA has %v, status names %s", ids, s.Status.StoreID)
	}
}

func TestDeletedOpenFGAStoreIsRecreated(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	old := b.await("demo", "ModelSynced=True/Merged").Status
	if err := b.hand.DeleteStore(t.Context(), old.StoreID); err != nil {
		t.Fatal(err)
	}
	b.RequestResync(topology.StoreSync)
	s := b.await("demo", "StoreSynced=True/Recreated", "ModelSynced=True/Merged")
	if ids := b.named("demo"); len(ids) != 1 || ids[0] != s.Status.StoreID || ids[0] == old.StoreID {
		t.Errorf("OpenFGA has %v, status names %s, before it was %s", ids, s.Status.StoreID, old.StoreID)
	}
	if ghost, err := b.hand.ReadLatestModel(t.Context(), old.StoreID); err != nil || ghost.GetId() != old.AuthorizationModelID {
		t.Errorf("the deleted store got model %s (%v), it had %s", ghost.GetId(), err, old.AuthorizationModelID)
	}
	b.expectTypes("user", "document")
	b.expectEvents("StoreCreated", "StoreRecreated")
}

func TestSyncedPassCostsOneRead(t *testing.T) {
	b := newTestEnv(t)
	b.applyStore("demo")
	b.applyModule("demo-docs", "demo", dsl("folder"))
	b.StartReflector() // It lists all kinds; a snapshot of fewer would be read again later.
	b.serve()
	b.awaitModule("demo-docs", "Merged=True/Merged")
	b.AwaitNoCalls()
	calls, writes := b.since()
	b.patch(`{"metadata":{"annotations":{"seen":"1"}}}`)
	testenv.Eventually(t, soon, func() error {
		if len(calls()) == 0 {
			return errors.New("no pass yet")
		}
		return nil
	})
	b.AwaitNoCalls()
	got := calls()
	if got["ListStores"] == 1 && got["ReadAuthorizationModels"] > 1 { // The resync after a takeover comes just now.
		got["ReadAuthorizationModels"]--
	}
	delete(got, "ListStores")
	if text := fmt.Sprint(got); text != "map[ReadAuthorizationModels:1]" {
		t.Errorf("OpenFGA was called %s", text)
	}
	if n := writes(); n != 0 {
		t.Errorf("%d writes to the API server: %v", n, b.Kube.WritesByOp())
	}
}
