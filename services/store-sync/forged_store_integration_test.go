//go:build integration

package storesync_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// ofStore returns a forgery of the Store demo.
func ofStore(edit func(c *event.Change, object map[string]any)) testenv.Forgery {
	return testenv.Forgery{Kind: kinds.Stores(), Name: "demo", Edit: edit}
}

// late returns a forgery of a deleted Store that left an OpenFGA store with a model behind.
func late(name, id, modelID string) testenv.Forgery {
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
func (b *bed) awaitAsked(op string, before int) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		if b.Kube.CallsByOp()[op] == before {
			return errors.New("the API server was not asked: " + op)
		}
		return nil
	})
}

// awaitTold waits until the stream holds the true state of an object.
func (b *bed) awaitTold(kind kinds.Kind, name string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		is, err := b.Resource(kind).Get(b.T.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if told := b.Told(kind, "", name).ResourceVersion; told != is.GetResourceVersion() {
			return fmt.Errorf("the bus tells of version %s, not of %s", told, is.GetResourceVersion())
		}
		return nil
	})
}

func TestAnOpenFGAStoreOfOthersIsTakenOnlyIfTheAPIServerSaysSo(t *testing.T) {
	b := newBed(t)
	id, modelID := b.theirs("demo")
	b.Reflector()
	b.serve()
	b.applyStore("demo")
	b.await("demo", "StoreSynced=False/NameTaken")
	b.Settled()
	asking := ofStore(func(c *event.Change, o map[string]any) {
		c.Generation++
		field(o, "spec")["adoption"] = string(corev1alpha1.AdoptionAlways)
	})
	asked := b.Kube.CallsByOp()[get(asking)]
	b.Forge(asking, 1)
	b.awaitAsked(get(asking), asked)
	b.Forge(late("demo", id, "a guess"), -1)
	b.applyStore("demo", func(s *corev1alpha1.StoreSpec) { s.CoreModule += "type folder\n" })
	s := b.await("demo", "StoreSynced=False/NameTaken")
	b.Settled()
	latest, err := b.hand.LatestModel(t.Context(), id)
	if err != nil || s.Status.StoreID != "" || latest.GetId() != modelID || b.OpenFGA.Writes() != 0 {
		t.Errorf("%d writes to OpenFGA, %v; the status names %q", b.OpenFGA.Writes(), err, s.Status.StoreID)
	}
}

func TestAnOpenFGAStoreIsDeletedOnlyIfTheAPIServerSaysSo(t *testing.T) {
	whose := func(b *bed) (id, modelID string) {
		s := b.await("demo", "ModelSynced=True/Merged")
		return s.Status.StoreID, s.Status.AuthorizationModelID
	}
	for what, test := range map[string]struct {
		// arrange creates an OpenFGA store that must stay, and forge a message by which it would be deleted.
		arrange func(b *bed) (id, modelID string)
		forge   func(b *bed, id, modelID string)
	}{
		"it is another's": {
			func(b *bed) (id, modelID string) { return b.theirs("ghost") },
			func(b *bed, id, _ string) { b.Forge(late("ghost", id, "a guess"), -1) },
		},
		"it is that of a Store which is said to have another": {whose, func(b *bed, id, modelID string) {
			ghost := late("ghost", id, modelID)
			b.Forge(ofStore(func(_ *event.Change, o map[string]any) { field(o, "status")["storeId"] = "01ARZ3NDEKTSV4RRFFQ69G5FAV" }), 1)
			b.Forge(ghost, -1)
		}},
		"its Store is said to go": {whose, func(b *bed, _, _ string) { b.Forge(ofStore(ending), 1) }},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBed(t)
			b.Reflector()
			b.serve()
			b.applyStore("demo")
			b.await("demo", "StoreSynced=True/Created")
			id, modelID := test.arrange(b)
			b.Settled()
			test.forge(b, id, modelID)
			b.Settled()
			b.applyModule("honest", "demo", dsl("honest"))
			b.awaitModule("honest", "Merged=True/Merged")
			b.Settled()
			if _, found, err := b.hand.GetStore(t.Context(), id); err != nil || !found || b.OpenFGA.WritesByOp()["DeleteStore"] != 0 {
				t.Errorf("it is there: %v, %v; deleted: %d", found, err, b.OpenFGA.WritesByOp()["DeleteStore"])
			}
		})
	}
}

func TestWhatWasAdoptedIsKeptWhateverTheBusTellsOfIt(t *testing.T) {
	b := newBed(t)
	id, _ := b.theirs("demo")
	b.Reflector()
	r := b.serve()
	b.applyStore("demo", always)
	b.await("demo", "StoreSynced=True/Adopted", "ModelSynced=True/Merged")
	b.Settled()
	r.Stop()
	b.Delete(kinds.Stores(), "demo")
	b.awaitTold(kinds.Stores(), "demo")
	made := ofStore(func(_ *event.Change, o map[string]any) { delete(field(o, "status"), "adopted") })
	b.Forge(made, 0)
	asked := b.Kube.CallsByOp()[get(made)]
	b.serve()
	b.awaitAsked(get(made), asked)
	b.AwaitGone(kinds.Stores(), "demo")
	b.Settled()
	if ids := b.named("demo"); !slices.Equal(ids, []string{id}) {
		t.Errorf("OpenFGA has %v, want %s kept", ids, id)
	}
}

func TestAStoreIsLetGoOnlyIfTheAPIServerSaysSo(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	b.applyStore("demo", func(s *corev1alpha1.StoreSpec) { s.DeletionPolicy = corev1alpha1.DeletionRetain })
	b.await("demo", "ModelSynced=True/Merged")
	b.Settled()
	f := ofStore(ending)
	asked, writes := b.Kube.CallsByOp()[get(f)], b.Kube.Writes()
	b.Forge(f, 1)
	b.awaitAsked(get(f), asked)
	b.Settled()
	if has := b.store("demo").Finalizers; !slices.Contains(has, corev1alpha1.StoreFinalizer) || b.Kube.Writes() != writes {
		t.Errorf("the Store is held by %v, after %d writes", has, b.Kube.Writes()-writes)
	}
}

func TestWhatTheBusTellsOfAStatusIsNotWrittenToItInAnOutage(t *testing.T) {
	models := kinds.AuthorizationModels()
	for what, f := range map[string]testenv.Forgery{
		"of a Store": ofStore(func(_ *event.Change, o map[string]any) {
			field(o, "status")["storeId"] = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
			field(field(o, "status"), "live")["coreModule"] = evil(coreV1)
		}),
		"of a module": {Kind: models, Name: "docs", Edit: func(_ *event.Change, o map[string]any) {
			field(field(o, "status"), "live")["model"] = evil(dsl("folder"))
		}},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBed(t)
			b.Reflector()
			r := b.serve()
			b.applyStore("demo")
			b.applyModule("docs", "demo", dsl("folder"))
			b.awaitModule("docs", "Merged=True/Merged")
			id := b.await("demo", "ModelSynced=True/Merged").Status.StoreID
			b.Settled()
			r.Stop()
			b.applyStore("demo", func(s *corev1alpha1.StoreSpec) { s.CoreModule += "type team\n" })
			b.applyModule("docs", "demo", dsl("folder")+"    define writer: [user]\n")
			b.awaitTold(kinds.Stores(), "demo")
			b.awaitTold(models, "docs")
			b.Forge(f, 0)
			asked := b.Kube.CallsByOp()[get(f)]
			b.OpenFGA.FailBefore(func(context.Context, string) error { return status.Error(codes.Unavailable, "away") })
			b.serve()
			b.awaitAsked(get(f), asked)
			b.await("demo", "ModelSynced=Unknown/BackendUnavailable")
			b.awaitModule("docs", "Merged=Unknown/BackendUnavailable")
			b.expectNothingEvil()
			if is := b.store("demo").Status.StoreID; is != id {
				t.Errorf("the status names OpenFGA store %s, not %s", is, id)
			}
		})
	}
}

func TestAModuleThatTheStatusDoesNotListGoesOnlyIfTheAPIServerSaysSo(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	r := b.serve()
	b.applyStore("demo")
	b.applyModule("docs", "demo", dsl("folder"))
	b.awaitModule("docs", "Merged=True/Merged")
	b.await("demo", "ModelSynced=True/Merged")
	b.Settled()
	r.Stop()
	full := make([]corev1alpha1.ModuleStatus, plan.MaxModules)
	for i := range full {
		full[i] = corev1alpha1.ModuleStatus{Name: "others", Source: fmt.Sprintf("authorizationmodel/other-%d", i), State: "Merged"}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"modules": full}})
	if err != nil {
		t.Fatal(err)
	}
	b.patch(string(patch), "status")
	b.applyModule("honest", "demo", dsl("honest"))
	b.awaitTold(kinds.Stores(), "demo")
	b.awaitTold(kinds.AuthorizationModels(), "honest")
	end := testenv.Forgery{Kind: kinds.AuthorizationModels(), Name: "docs", Edit: ended}
	b.Forge(end, 1)
	asked := b.Kube.CallsByOp()[get(end)]
	b.serve()
	b.awaitAsked(get(end), asked)
	b.awaitTypes("honest", "folder")
}
