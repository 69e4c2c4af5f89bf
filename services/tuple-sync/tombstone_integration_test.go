//go:build integration

package tuplesync_test

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// replace makes another AuthorizationModel of the same name, past all finalizers.
func (b *testEnv) replace(name, store string, texts ...string) {
	b.T.Helper()
	b.RemoveFinalizers(kinds.AuthorizationModels(), name)
	b.Delete(kinds.AuthorizationModels(), name)
	b.module(name, store, texts...)
}

func TestObjectsReplacedDuringDowntimeAreCleanedUp(t *testing.T) {
	b := newTestEnv(t)
	b.store("demo")
	id := b.synced("demo", docs)
	b.StartReflector()
	r := b.serve()
	b.module("one", "demo", first)
	b.await(models, "one", "Synced")
	b.awaitTuples(id, first)
	b.AwaitNoCalls()
	r.Stop()
	b.replace("one", "demo", many(0, 1)...)
	b.replace("one", "demo", second)
	b.serve()
	b.await(models, "one", "Synced")
	b.awaitTuples(id, second)
}
