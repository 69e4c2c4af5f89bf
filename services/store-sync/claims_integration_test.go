//go:build integration

package storesync_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// claim makes a Store record an OpenFGA store.
func (b *testEnv) claim(store, id string) {
	b.T.Helper()
	b.Patch(kinds.Stores(), store, `{"status":{"storeId":"`+id+`"}}`, "status")
}

func TestOpenFGAStoreBelongsToStoreOfSameName(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.applyStore("older")
	running := b.serve()
	own := b.await("older", storeMerged).Status.StoreID
	b.applyStore("victim")
	id := b.await("victim", storeMerged).Status.StoreID
	b.claim("older", id)
	testenv.Eventually(t, soon, func() error {
		if got := b.store("older").Status.StoreID; got != own {
			return fmt.Errorf("the older Store has %q, want its own %q", got, own)
		}
		return nil
	})
	b.AwaitNoCalls()
	if s := b.store("victim"); s.Status.StoreID != id {
		t.Errorf("the victim has %q, want its own %q", s.Status.StoreID, id)
	}

	// The victim's record is lost too, and no replica decides on the claim before the older Store is deleted.
	running.Stop()
	b.claim("older", id)
	b.claim("victim", "")
	b.remove(kinds.Stores(), "older")
	b.serve()
	b.AwaitGone(kinds.Stores(), "older")
	if ids := b.named("victim"); !slices.Equal(ids, []string{id}) {
		t.Errorf("OpenFGA has %v, want %s", ids, id)
	}
}
