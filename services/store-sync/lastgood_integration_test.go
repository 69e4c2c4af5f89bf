//go:build integration

package storesync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// relation reports whether the live model of the Store demo has a relation of type folder.
func (b *testEnv) relation(relation string) bool {
	b.T.Helper()
	m, err := b.hand.ReadLatestModel(b.T.Context(), b.store("demo").Status.StoreID)
	if err != nil {
		b.T.Fatal(err)
	}
	for _, t := range m.GetTypeDefinitions() {
		if _, ok := t.GetRelations()[relation]; ok && t.GetType() == "folder" {
			return true
		}
	}
	return false
}

const (
	twoRelations = "module folder\n\ntype folder\n  relations\n    define reader: [user]\n    define writer: [user]\n"
	misspelt     = "module folder\n\ntype folder\n  relations\n    define reader [user]\n"
	dependent    = "module shelf\n\nextend type folder\n  relations\n    define shelver: reader\n"
)

// newEnvWithSyncedStore returns a bed with a Store that has a module and another that depends on it.
func newEnvWithSyncedStore(t *testing.T) (*testEnv, *testenv.RunningService) {
	t.Helper()
	b := newTestEnv(t)
	b.StartReflector()
	running := b.serve()
	b.applyStore("demo")
	b.applyModule("docs", "demo", twoRelations)
	b.applyModule("shelf", "demo", dependent)
	b.awaitModule("docs", "Merged=True/Merged")
	b.awaitModule("shelf", "Merged=True/Merged")
	b.AwaitNoCalls()
	return b, running
}

func TestInvalidEditKeepsModel(t *testing.T) {
	b, running := newEnvWithSyncedStore(t)
	good := b.store("demo").Status.AuthorizationModelID
	b.applyModule("docs", "demo", misspelt)
	m := b.awaitModule("docs", "Merged=False/LastGoodLive")
	if why := messageOf(m.Status.Conditions, corev1alpha1.Merged); !strings.Contains(why, "line 5:") || !strings.Contains(why, "to revoke now") {
		t.Errorf("it says %q", why)
	}
	b.awaitModule("shelf", "Merged=True/Merged")
	s := b.await("demo", "ModulesInSync=False/LastGoodLive", "ModelSynced=True/ModulesRejected")
	if s.Status.AuthorizationModelID != good {
		t.Errorf("model %s was written over %s", s.Status.AuthorizationModelID, good)
	}
	b.AwaitNoCalls()
	running.Stop()
	b.serve() // It starts without memory.
	b.applyModule("other", "demo", dsl("other"))
	b.awaitModule("other", "Merged=True/Merged")
	b.expectTypes("user", "document", "folder", "other")
	if !b.relation("writer") || !b.relation("shelver") {
		t.Error("what was live before the typo is not")
	}
	b.applyModule("docs", "demo", dsl("folder"))
	b.awaitModule("docs", "Merged=True/Merged")
	if b.relation("writer") {
		t.Error("what was removed is live")
	}
	b.AwaitNoCalls()
	b.applyModule("docs", "demo", misspelt)
	b.awaitModule("docs", "Merged=False/LastGoodLive")
	if b.relation("writer") || !b.relation("reader") {
		t.Error("a typo gave back what was removed before")
	}
}

func TestLiveTextSurvivesLossOfOpenFGA(t *testing.T) {
	b, _ := newEnvWithSyncedStore(t)
	b.applyModule("docs", "demo", misspelt)
	b.awaitModule("docs", "Merged=False/LastGoodLive")
	b.AwaitNoCalls()
	lost := b.store("demo").Status.StoreID
	if err := b.hand.DeleteStore(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	b.applyModule("other", "demo", dsl("other"))
	testenv.Eventually(t, soon, func() error {
		if id := b.store("demo").Status.StoreID; id == lost {
			return fmt.Errorf("the Store still names %s", id)
		}
		return nil
	})
	b.awaitModule("other", "Merged=True/Merged")
	b.await("demo", "StoreSynced=True/Recreated", "ModelSynced=True/ModulesRejected")
	b.expectTypes("user", "document", "folder", "other")

	for _, name := range []string{"docs", "shelf", "other"} {
		b.applyModule(name, "elsewhere", map[string]string{"docs": misspelt, "shelf": dependent, "other": dsl("other")}[name])
	}
	b.Delete(kinds.Stores(), "demo")
	b.AwaitGone(kinds.Stores(), "demo")
	b.applyStore("demo")
	b.applyModule("docs", "demo", misspelt)
	b.awaitModule("docs", "Merged=False/Rejected")
	b.await("demo", "ModelSynced=True/ModulesRejected")
	b.expectTypes("user", "document")
}

// recordOfDocs is the request that records the live text of module docs.
const recordOfDocs = "PATCH /apis/core.platform-mesh.io/v1alpha1/authorizationmodels/docs/status"

// names waits until the Store demo names another model.
func (b *testEnv) names(other string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		if b.store("demo").Status.AuthorizationModelID == other {
			return fmt.Errorf("the Store still names %s", other)
		}
		return nil
	})
}

// Tuples wait for the model that the Store names. An invalid edit of a module without a recorded text would remove
// them.
func TestModelIDIsReportedAfterTextsAreRecorded(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	named := b.await("demo", "ModelSynced=True/Merged").Status.AuthorizationModelID
	b.Kube.FailBefore(failing(recordOfDocs))
	b.applyModule("docs", "demo", dsl("folder"))
	testenv.Eventually(t, soon, func() error {
		if n := b.Kube.CallsByOp()[recordOfDocs]; n < 2 {
			return fmt.Errorf("the record was tried %d times", n)
		}
		return nil
	})
	b.expectTypes("user", "document", "folder")
	if id := b.store("demo").Status.AuthorizationModelID; id != named {
		t.Errorf("the Store names model %s, and nothing says what is live in it", id)
	}
	b.Kube.FailBefore(nil)
	b.awaitModule("docs", "Merged=True/Merged")
	b.names(named)
}

func TestModuleWithForbiddenStatusDoesNotBlockOthers(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	named := b.await("demo", "ModelSynced=True/Merged").Status.AuthorizationModelID
	b.Kube.FailBefore(func(_ context.Context, op string) error {
		if op == recordOfDocs {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "authorizationmodels"}, "docs", errors.New("a policy"))
		}
		return nil
	})
	b.applyModule("docs", "demo", dsl("folder"))
	b.names(named)
	b.applyModule("zoo", "demo", dsl("animal"))
	b.awaitModule("zoo", "Merged=True/Merged")
	b.expectTypes("user", "document", "folder", "animal")
}
