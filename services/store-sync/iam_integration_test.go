//go:build integration

package storesync_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

const configured = "Ready=True/IAMSystemConfigured"

// protect registers a kind "group/Kind" with the permissions get and list.
func (b *testEnv) protect(name, kind, plural string, parents ...string) {
	b.T.Helper()
	spec := iamv1alpha1.ProtectedResourceSpec{Singular: name, Plural: plural, Permissions: []string{"get", "list"}}
	spec.ServiceRef.Name, spec.Kind, _ = strings.Cut(kind, "/")
	for _, parent := range parents {
		group, kind, _ := strings.Cut(parent, "/")
		spec.ParentResources = append(spec.ParentResources, iamv1alpha1.ParentResourceRef{APIGroup: group, Kind: kind})
	}
	b.Kube.Apply(b.T, kinds.ProtectedResources(), name, spec)
}

func (b *testEnv) awaitProtected(name string, want ...string) {
	b.T.Helper()
	testenv.AwaitObject(b.Env, kinds.ProtectedResources(), name, func(p *iamv1alpha1.ProtectedResource) error {
		return withoutRight(p.Status.Conditions, p.Generation, want)
	})
}

// awaitKinds waits until the model of the IAM store has exactly these kinds.
func (b *testEnv) awaitKinds(want ...string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		m, err := b.hand.ReadLatestModel(b.T.Context(), b.store("iam").Status.StoreID)
		if err != nil {
			return err
		}
		var names []string
		for _, t := range m.GetTypeDefinitions() {
			if strings.Contains(t.GetType(), "/") && !strings.HasPrefix(t.GetType(), "iam.miloapis.com/") {
				names = append(names, t.GetType())
			}
		}
		if !slices.Equal(names, want) {
			return fmt.Errorf("the model has the kinds %v, want %v", names, want)
		}
		return nil
	})
}

func TestProtectedResourcesMakeIAMModel(t *testing.T) {
	b := newTestEnv(t)
	b.serve()
	b.StartReflector()
	b.protect("widget", "a.example/Widget", "widgets", "a.example/Gadget")
	b.awaitProtected("widget", "Ready=False/ParentNotRegistered")
	b.awaitKinds("a.example/Widget") // Bindings on it and its objects take effect.
	b.protect("twin", "a.example/Widget", "twins")
	b.protect("odd", "a_b/Odd", "odds")
	b.protect("gadget", "a.example/Gadget", "gadgets")
	b.awaitProtected("widget", configured)
	b.awaitProtected("gadget", configured)
	b.awaitProtected("twin", "Ready=False/AlreadyRegistered")
	b.awaitProtected("odd", "Ready=False/InvalidName")
	b.awaitKinds("a.example/Gadget", "a.example/Widget")
	spec := b.await("iam", "ModelSynced=True/Merged").Spec
	if spec.DeletionPolicy != corev1alpha1.DeletionRetain || spec.Discovery != corev1alpha1.DiscoveryNone || len(spec.Tuples) != 1 {
		t.Errorf("the Store is made as %+v", spec)
	}
	b.AwaitNoCalls()

	// Passes over a Store in step write nothing.
	openFGA, kube := b.since()
	b.Patch(kinds.Stores(), "iam", `{"metadata":{"annotations":{"look":"again"}}}`)
	b.AwaitNoCalls()
	if calls := openFGA(); calls["WriteAuthorizationModel"] > 0 || kube() > 0 {
		t.Errorf("a pass in step made the calls %v and %d writes", calls, kube())
	}

	// A deleted kind frees its room and removes its relations.
	b.release("widget")
	b.awaitProtected("twin", configured)
	b.release("twin")
	b.awaitKinds("a.example/Gadget")
	b.AwaitNoCalls()

	// The Store stays as long as it holds types of a kind. Later it is not created again.
	b.Delete(kinds.Stores(), "iam")
	b.await("iam", "Deleting=True/Blocked")
	b.awaitProtected("gadget", "Ready=False/StoreDeleting")
	b.release("gadget")
	b.release("odd")
	b.await("iam", "Deleting=True/WaitingForTuples") // tuple-sync would remove them.
	b.SetFinalizers(kinds.Stores(), "", "iam", corev1alpha1.StoreFinalizer)
	testenv.Eventually(t, soon, func() error {
		if _, err := b.ResourceClient(kinds.Stores()).Get(t.Context(), "iam", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Store is still there: %w", err)
		}
		return nil
	})
	b.AwaitNoCalls()
}

// An edited claim counts as new, even of the oldest object, so the present owner keeps the kind. The previous kind of
// the edited object is free once that is recorded.
func TestProtectedResourceEditDoesNotTakeKindFromOthers(t *testing.T) {
	b := newTestEnv(t)
	b.serve()
	b.StartReflector()
	b.protect("widget", "a.example/Widget", "widgets")
	b.awaitProtected("widget", configured)
	b.protect("gadget", "a.example/Gadget", "gadgets", "a.example/Widget")
	b.awaitProtected("gadget", configured)
	b.protect("twin", "a.example/Widget", "twins")
	b.awaitProtected("twin", "Ready=False/AlreadyRegistered")

	b.protect("widget", "a.example/Widget", "widgets", "a.example/Gadget") // The link is a circle, and the other object was first.
	b.awaitProtected("widget", "Ready=False/ParentCycle", "Registered=True/ParentCycle")
	b.awaitProtected("gadget", configured)

	b.protect("widget", "a.example/Gadget", "gadgets")
	b.awaitProtected("widget", "Ready=False/AlreadyRegistered")
	b.awaitProtected("gadget", configured)
	b.awaitProtected("twin", configured)
	b.awaitKinds("a.example/Gadget", "a.example/Widget")
	var gadget, widget, twin iamv1alpha1.ProtectedResource
	for name, p := range map[string]*iamv1alpha1.ProtectedResource{"gadget": &gadget, "widget": &widget, "twin": &twin} {
		if err := b.Get(kinds.ProtectedResources(), name, p); err != nil {
			t.Fatal(err)
		}
	}
	if want := (&iamv1alpha1.Registration{
		Group: "a.example", Kind: "Gadget", Plural: "gadgets", Permissions: []string{"a.example/gadgets.get", "a.example/gadgets.list"},
		Parents: []string{"a.example/Widget"}, Generation: gadget.Generation,
	}); !equality.Semantic.DeepEqual(gadget.Status.Registered, want) {
		t.Errorf("recorded is %+v, want %+v", gadget.Status.Registered, want)
	}
	if widget.Status.Registered != nil || twin.Status.Registered == nil || twin.Status.Registered.Plural != "twins" {
		t.Errorf("recorded are %+v and %+v", widget.Status.Registered, twin.Status.Registered)
	}
	b.AwaitNoCalls()
}

// release deletes a ProtectedResource that holds a finalizer of software that does not run.
func (b *testEnv) release(name string) {
	b.T.Helper()
	b.SetFinalizers(kinds.ProtectedResources(), "", name, iamv1alpha1.ProtectedResourceFinalizer)
	b.Delete(kinds.ProtectedResources(), name)
	b.AwaitGone(kinds.ProtectedResources(), name)
}

func TestModuleCannotDefineProtectedKinds(t *testing.T) {
	b := newTestEnv(t)
	stores := clientOf(b.serve())
	b.StartReflector()
	b.protect("widget", "a.example/Widget", "widgets")
	b.awaitProtected("widget", configured)
	b.applyModule("good", "iam", "module good\n\ntype doc\n  relations\n    define owner: [cluster]\n")
	b.awaitModule("good", "Merged=True/Merged")
	b.applyModule("bad", "iam", "module bad\n\nextend type a.example/Widget\n  relations\n    define door: [cluster]\n")
	rejected := b.awaitModule("bad", "Merged=False/Rejected")
	if message := messageOf(rejected.Status.Conditions, corev1alpha1.Merged); !strings.Contains(message, "without '/'") {
		t.Errorf("it is told %q", message)
	}
	b.awaitKinds("a.example/Widget")
	b.awaitProtected("widget", configured)

	preview, err := stores.PreviewModel(t.Context(), &storev1.PreviewModelRequest{Name: "iam", Module: "module more\n\ntype page\n"})
	if err != nil {
		t.Fatal(err)
	}
	if !preview.GetAccepted() || len(preview.GetChanges()) != 1 || !strings.Contains(preview.GetDsl(), "type a.example/Widget") {
		t.Errorf("the preview is %v", preview)
	}
	preview, err = stores.PreviewModel(t.Context(), &storev1.PreviewModelRequest{Name: "iam", Module: "module more\n\ntype b.example/Page\n"})
	if err != nil || preview.GetAccepted() {
		t.Errorf("the preview of a reserved type is %v (%v)", preview, err)
	}
	live, err := stores.GetModel(t.Context(), &storev1.GetModelRequest{Name: "iam"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(live.GetDefinitions(), func(d *storev1.Definition) bool { return d.GetType() == "a.example/Widget" && d.GetSource() == "iam" }) {
		t.Errorf("the definitions are %v", live.GetDefinitions())
	}
}

// A change that removes a kind, and that the API server does not know, changes no model. All grants on the kind would go
// too.
func TestKindIsDroppedOnlyAfterAPIServerCheck(t *testing.T) {
	for name, edit := range map[string]func(c *event.Change, o map[string]any){
		"it is gone": func(c *event.Change, _ map[string]any) { c.Deleted = true },
		"it is to go": func(_ *event.Change, o map[string]any) {
			field(o, "metadata")["deletionTimestamp"] = "2026-01-02T03:04:05Z"
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestEnv(t)
			b.serve()
			b.StartReflector()
			b.protect("widget", "a.example/Widget", "widgets")
			b.protect("gadget", "a.example/Gadget", "gadgets")
			b.awaitProtected("widget", configured)
			b.awaitProtected("gadget", configured)
			b.AwaitNoCalls()
			model := b.store("iam").Status.AuthorizationModelID
			const list = "GET /apis/iam.miloapis.com/v1alpha1/protectedresources"
			before := b.Kube.CallsByOp()[list]
			b.PublishForgery(testenv.Forgery{Kind: kinds.ProtectedResources(), Name: "widget", Edit: edit}, 1)
			testenv.Eventually(t, soon, func() error {
				if b.Kube.CallsByOp()[list] == before {
					return errors.New("the API server was not asked")
				}
				return nil
			})
			b.AwaitCaughtUp(topology.StoreSync) // Whatever follows from the message is done.
			latest, err := b.hand.ReadLatestModel(t.Context(), b.store("iam").Status.StoreID)
			if err != nil {
				t.Fatal(err)
			}
			if latest.GetId() != model {
				t.Errorf("there is another model: %v", latest.GetTypeDefinitions())
			}
			b.protect("later", "a.example/Later", "laters") // Later versions than that of the message exist now.
			b.awaitProtected("later", configured)
			b.Delete(kinds.ProtectedResources(), "widget") // A true deletion takes effect.
			b.awaitKinds("a.example/Gadget", "a.example/Later")
		})
	}
}
