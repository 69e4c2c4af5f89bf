//go:build integration

package storesync_test

import (
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// theirsOfIAM creates the OpenFGA store of another cluster's IAM, with grants and with its own name. The Store here
// records it.
func (b *testEnv) theirsOfIAM(owner string) (id, modelID string) {
	b.T.Helper()
	id, err := b.hand.CreateStore(b.T.Context(), "iam")
	if err != nil {
		b.T.Fatal(err)
	}
	m, err := transformer.TransformDSLToProto("model\n  schema 1.1\ntype user\ntype cluster\ntype store\n  relations\n    define owner: [cluster]\n")
	if err != nil {
		b.T.Fatal(err)
	}
	if modelID, err = b.hand.WriteModel(b.T.Context(), id, m); err != nil {
		b.T.Fatal(err)
	}
	object, user, _ := strings.Cut(owner, "#owner@")
	tuple := []*openfgav1.TupleKey{{Object: object, Relation: "owner", User: user}}
	if err := b.hand.Write(b.T.Context(), id, modelID, tuple, nil); err != nil {
		b.T.Fatal(err)
	}
	b.Kube.Apply(b.T, kinds.Stores(), "iam", corev1alpha1.StoreSpec{CoreModule: coreV1, DeletionPolicy: corev1alpha1.DeletionRetain})
	b.Patch(kinds.Stores(), "iam", `{"status":{"storeId":"`+id+`"}}`, "status")
	return id, modelID
}

// A model of this cluster would change every decision on the other cluster's grants.
func TestIAMStoreOfOtherClusterDoesNotGetModel(t *testing.T) {
	for name, owner := range map[string]string{
		"under the same name":     "store:iam#owner@cluster:another",
		"under a name of its own": "store:permissions#owner@cluster:another",
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestEnv(t)
			id, modelID := b.theirsOfIAM(owner)
			b.protect("widget", "a.example/Widget", "widgets")
			b.StartReflector()
			b.serve()
			s := b.await("iam", "Adopted=False/NotAdopted", "ModelSynced=False/NotAdopted")
			if m := messageOf(s.Status.Conditions, corev1alpha1.Adopted); !strings.Contains(m, owner) || !strings.Contains(m, "entail iam adopt --dry-run") {
				t.Errorf("the message is %q", m)
			}
			b.awaitProtected("widget", "Ready=False/NotAdopted")
			b.AwaitNoCalls()
			latest, err := b.hand.ReadLatestModel(t.Context(), id)
			if err != nil || latest.GetId() != modelID || b.OpenFGA.Writes() != 0 {
				t.Errorf("model %s is live, after %d writes (%v)", latest.GetId(), b.OpenFGA.Writes(), err)
			}
			b.Kube.Apply(t, kinds.Stores(), "iam", corev1alpha1.StoreSpec{
				CoreModule: coreV1, DeletionPolicy: corev1alpha1.DeletionRetain, Adoption: corev1alpha1.AdoptionAlways,
			})
			b.await("iam", "Adopted=True/Taken", "ModelSynced=True/Merged")
			b.awaitProtected("widget", configured)
		})
	}
}

func TestCreatedIAMStoreIsOwned(t *testing.T) {
	b := newTestEnv(t)
	b.protect("widget", "a.example/Widget", "widgets")
	b.StartReflector()
	b.serve()
	b.awaitProtected("widget", configured)
	b.await("iam", "Adopted=True/Ours", "ModelSynced=True/Merged")
	b.AwaitNoCalls()
	calls, writes := b.since()
	b.protect("gadget", "a.example/Gadget", "gadgets")
	b.awaitProtected("gadget", configured)
	b.AwaitNoCalls()
	if calls := calls(); calls["ReadChanges"] == 0 || calls["WriteAuthorizationModel"] != 1 || writes() == 0 {
		t.Errorf("another kind takes %v", calls)
	}
	b.applyStore("demo")
	s := b.await("demo", "ModelSynced=True/Merged")
	if slices.ContainsFunc(s.Status.Conditions, func(c metav1.Condition) bool { return c.Type == corev1alpha1.Adopted }) {
		t.Errorf("of a Store of others it is said whose it is: %v", s.Status.Conditions)
	}
}
