//go:build integration

package storesync_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/openfga/language/pkg/go/transformer"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func alwaysAllowed(s *corev1alpha1.StoreSpec) { s.Adoption = corev1alpha1.AdoptionAlways }

// theirs creates an OpenFGA store of another owner, with a model.
func (b *testEnv) theirs(name string) (id, modelID string) {
	b.T.Helper()
	id, err := b.hand.CreateStore(b.T.Context(), name)
	if err != nil {
		b.T.Fatal(err)
	}
	m, err := transformer.TransformDSLToProto("model\n  schema 1.1\ntype alien\n")
	if err != nil {
		b.T.Fatal(err)
	}
	if modelID, err = b.hand.WriteModel(b.T.Context(), id, m); err != nil {
		b.T.Fatal(err)
	}
	return id, modelID
}

func TestForeignOpenFGAStoreNeedsAdoption(t *testing.T) {
	b := newTestEnv(t)
	id, modelID := b.theirs("demo")
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	s := b.await("demo", "StoreSynced=False/NameTaken", "ModelSynced=False/NoStore")
	if m := messageOf(s.Status.Conditions, corev1alpha1.StoreSynced); !strings.Contains(m, id) || !strings.Contains(m, "spec.adoption: Always") {
		t.Errorf("the message is %q", m)
	}
	b.AwaitNoCalls()
	if n := b.OpenFGA.Writes(); n != 0 || s.Status.StoreID != "" {
		t.Errorf("%d writes to OpenFGA, the status names %q", n, s.Status.StoreID)
	}
	b.expectEvents("StoreRejected")
	b.applyStore("demo", alwaysAllowed)
	s = b.await("demo", "StoreSynced=True/Adopted", "ModelSynced=True/Merged")
	if s.Status.StoreID != id || !s.Status.Adopted || s.Status.AuthorizationModelID == modelID {
		t.Errorf("the status is %+v", s.Status)
	}
	b.expectTypes("user", "document")
	b.Delete(kinds.Stores(), "demo")
	b.AwaitGone(kinds.Stores(), "demo")
	b.AwaitNoCalls()
	if ids := b.named("demo"); !slices.Equal(ids, []string{id}) {
		t.Errorf("OpenFGA has %v, want %s kept", ids, id)
	}
	b.applyStore("demo") // The informer holds the earlier Store.
	if s := b.await("demo", "StoreSynced=True/Adopted", "ModelSynced=True/Merged"); s.Status.StoreID != id || !s.Status.Adopted {
		t.Errorf("the status is %+v", s.Status)
	}
}
