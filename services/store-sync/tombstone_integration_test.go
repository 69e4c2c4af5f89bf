//go:build integration

package storesync_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/testenv"
)

func TestForgedDeletionKeepsLiveStore(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	id := b.await("demo", "ModelSynced=True/Merged").Status.StoreID
	b.AwaitNoCalls()
	bus := publish.New(b.JS)
	last, err := bus.LastChange(t.Context(), event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	wrong := last.Change
	wrong.Deleted = true
	if _, err := bus.PublishChange(t.Context(), wrong, last.Sequence, publish.PublicationOptions{}); err != nil {
		t.Fatal(err)
	}
	b.AwaitNoCalls()
	if ids := b.named("demo"); !slices.Equal(ids, []string{id}) || b.OpenFGA.WritesByOp()["DeleteStore"] != 0 {
		t.Errorf("OpenFGA has %v, want %s kept", ids, id)
	}
}

func TestDeletedStoreWithUnfinishedSuccessorIsCleanedUp(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	r := b.serve()
	b.applyStore("demo")
	b.await("demo", "ModelSynced=True/Merged")
	b.AwaitNoCalls()
	r.Stop()
	b.Delete(kinds.Stores(), "demo")
	b.patch(`{"metadata":{"finalizers":null}}`)
	b.AwaitGone(kinds.Stores(), "demo")
	for range 2 {
		b.applyStore("demo")
		b.Delete(kinds.Stores(), "demo")
		b.AwaitGone(kinds.Stores(), "demo")
	}
	b.serve()
	testenv.Eventually(t, soon, func() error {
		if ids := b.named("demo"); len(ids) > 0 {
			return fmt.Errorf("OpenFGA still has %v", ids)
		}
		return nil
	})
}
