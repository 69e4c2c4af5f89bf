//go:build integration

package storesync_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// get returns the operation with which store-sync reads the object from the API server.
func get(f testenv.Forgery) string {
	return "GET /apis/" + f.Kind.Group + "/" + f.Kind.Version + "/" + f.Kind.Resource + "/" + f.Name
}

func field(object map[string]any, name string) map[string]any {
	inner, _ := object[name].(map[string]any)
	return inner
}

// ofStore returns a forgery of the Store demo.
func ofStore(edit func(c *event.Change, object map[string]any)) testenv.Forgery {
	return testenv.Forgery{Kind: kinds.Stores(), Name: "demo", Edit: edit}
}

// forgeryOfLateDeletion returns a forgery of a deleted Store that left an OpenFGA store with a model behind.
func forgeryOfLateDeletion(name, id, modelID string) testenv.Forgery {
	return testenv.Forgery{Kind: kinds.Stores(), Name: name, Like: "demo", Edit: func(c *event.Change, o map[string]any) {
		c.Deleted, c.UID = true, "late"
		field(o, "metadata")["name"], field(o, "metadata")["uid"] = name, "late"
		field(o, "metadata")["finalizers"] = []any{corev1alpha1.StoreFinalizer}
		o["status"] = map[string]any{"storeId": id, "authorizationModelId": modelID}
	}}
}

func ending(_ *event.Change, o map[string]any) {
	field(o, "metadata")["deletionTimestamp"] = metav1.Now().UTC().Format("2006-01-02T15:04:05Z")
}

// awaitAsked waits until the API server has answered one more request of an operation.
func (b *testEnv) awaitAsked(op string, before int) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		if b.Kube.CallsByOp()[op] == before {
			return errors.New("the API server was not asked: " + op)
		}
		return nil
	})
}

// awaitTold waits until the stream holds the true state of an object.
func (b *testEnv) awaitTold(kind kinds.Kind, name string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		is, err := b.ResourceClient(kind).Get(b.T.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if told := b.LastChange(kind, "", name).ResourceVersion; told != is.GetResourceVersion() {
			return fmt.Errorf("the bus tells of version %s, not of %s", told, is.GetResourceVersion())
		}
		return nil
	})
}

func TestAdoptionIsVerifiedAtAPIServer(t *testing.T) {
	b := newTestEnv(t)
	id, modelID := b.theirs("demo")
	b.StartReflector()
	b.serve()
	b.applyStore("demo")
	b.await("demo", "StoreSynced=False/NameTaken")
	b.AwaitNoCalls()
	asking := ofStore(func(c *event.Change, o map[string]any) {
		c.Generation++
		field(o, "spec")["adoption"] = string(corev1alpha1.AdoptionAlways)
	})
	asked := b.Kube.CallsByOp()[get(asking)]
	b.PublishForgery(asking, 1)
	b.awaitAsked(get(asking), asked)
	b.PublishForgery(forgeryOfLateDeletion("demo", id, "a guess"), -1)
	b.applyStore("demo", func(s *corev1alpha1.StoreSpec) { s.CoreModule += "type folder\n" })
	s := b.await("demo", "StoreSynced=False/NameTaken")
	b.AwaitNoCalls()
	latest, err := b.hand.ReadLatestModel(t.Context(), id)
	if err != nil || s.Status.StoreID != "" || latest.GetId() != modelID || b.OpenFGA.Writes() != 0 {
		t.Errorf("%d writes to OpenFGA, %v; the status names %q", b.OpenFGA.Writes(), err, s.Status.StoreID)
	}
}

func TestStoreDeletionIsVerifiedAtAPIServer(t *testing.T) {
	whose := func(b *testEnv) (id, modelID string) {
		s := b.await("demo", "ModelSynced=True/Merged")
		return s.Status.StoreID, s.Status.AuthorizationModelID
	}
	for what, test := range map[string]struct {
		// arrange creates an OpenFGA store that must stay, and forge a message by which it would be deleted.
		arrange func(b *testEnv) (id, modelID string)
		forge   func(b *testEnv, id, modelID string)
	}{
		"it is another's": {
			func(b *testEnv) (id, modelID string) { return b.theirs("ghost") },
			func(b *testEnv, id, _ string) { b.PublishForgery(forgeryOfLateDeletion("ghost", id, "a guess"), -1) },
		},
		"it is that of a Store which is said to have another": {whose, func(b *testEnv, id, modelID string) {
			ghost := forgeryOfLateDeletion("ghost", id, modelID)
			b.PublishForgery(ofStore(func(_ *event.Change, o map[string]any) { field(o, "status")["storeId"] = "01ARZ3NDEKTSV4RRFFQ69G5FAV" }), 1)
			b.PublishForgery(ghost, -1)
		}},
		"its Store is said to go": {whose, func(b *testEnv, _, _ string) { b.PublishForgery(ofStore(ending), 1) }},
	} {
		t.Run(what, func(t *testing.T) {
			b := newTestEnv(t)
			b.StartReflector()
			b.serve()
			b.applyStore("demo")
			b.await("demo", "StoreSynced=True/Created")
			id, modelID := test.arrange(b)
			b.AwaitNoCalls()
			test.forge(b, id, modelID)
			b.AwaitNoCalls()
			b.applyModule("honest", "demo", dsl("honest"))
			b.awaitModule("honest", "Merged=True/Merged")
			b.AwaitNoCalls()
			if _, found, err := b.hand.GetStore(t.Context(), id); err != nil || !found || b.OpenFGA.WritesByOp()["DeleteStore"] != 0 {
				t.Errorf("it is there: %v, %v; deleted: %d", found, err, b.OpenFGA.WritesByOp()["DeleteStore"])
			}
		})
	}
}

func TestForgedChangeKeepsAdoptedStore(t *testing.T) {
	b := newTestEnv(t)
	id, _ := b.theirs("demo")
	b.StartReflector()
	r := b.serve()
	b.applyStore("demo", alwaysAllowed)
	b.await("demo", "StoreSynced=True/Adopted", "ModelSynced=True/Merged")
	b.AwaitNoCalls()
	r.Stop()
	b.Delete(kinds.Stores(), "demo")
	b.awaitTold(kinds.Stores(), "demo")
	made := ofStore(func(_ *event.Change, o map[string]any) { delete(field(o, "status"), "adopted") })
	b.PublishForgery(made, 0)
	asked := b.Kube.CallsByOp()[get(made)]
	b.serve()
	b.awaitAsked(get(made), asked)
	b.AwaitGone(kinds.Stores(), "demo")
	b.AwaitNoCalls()
	if ids := b.named("demo"); !slices.Equal(ids, []string{id}) {
		t.Errorf("OpenFGA has %v, want %s kept", ids, id)
	}
}

// A change that removes a live module, and that the API server does not know, changes no model.
func TestLiveModuleIsDroppedOnlyAfterAPIServerCheck(t *testing.T) {
	const list = "GET /apis/core.platform-mesh.io/v1alpha1/authorizationmodels"
	for what, edit := range map[string]func(*event.Change, map[string]any){
		"it is said to be gone": func(c *event.Change, _ map[string]any) { c.Deleted = true },
		"it is said to refer to another Store": func(_ *event.Change, o map[string]any) {
			field(field(o, "spec"), "storeRef")["name"] = "other"
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := newTestEnv(t)
			b.StartReflector()
			b.serve()
			b.applyStore("demo")
			b.applyModule("docs", "demo", dsl("folder"))
			b.awaitModule("docs", "Merged=True/Merged")
			model := b.await("demo", "ModelSynced=True/Merged").Status.AuthorizationModelID
			b.AwaitNoCalls()
			listed := b.Kube.CallsByOp()[list]
			b.PublishForgery(testenv.Forgery{Kind: kinds.AuthorizationModels(), Name: "docs", Edit: edit}, 1_000_000)
			b.awaitAsked(list, listed)
			b.AwaitCaughtUp(topology.StoreSync)
			b.AwaitNoCalls()
			if is := b.store("demo").Status.AuthorizationModelID; is != model {
				t.Errorf("the model is %s, want %s", is, model)
			}
			b.applyModule("honest", "demo", dsl("honest"))
			b.awaitModule("honest", "Merged=True/Merged")
			b.awaitTypes("honest", "folder")
		})
	}
}
