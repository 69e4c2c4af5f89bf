//go:build integration

package storesync_test

import (
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/testenv"
)

func TestFailedDiscoveryIsRetried(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve(ordinary("ui.platform-mesh.io/v1alpha1"), unprivileged)
	b.applyStore("demo", withAccounts)
	b.define(definition{"ui.platform-mesh.io", "pages", "Page", "v1alpha1", ""})
	b.awaitTypes("ui_platform-mesh_io_page")
	b.AwaitNoCalls()
	b.Kube.FailBefore(failing("GET /apis/ui.platform-mesh.io/v1alpha1"))
	b.define(definition{"ui.platform-mesh.io", "themes", "Theme", "v1alpha1", ""})
	b.applyModule("docs", "demo", dsl("folder"))
	b.awaitModule("docs", "Merged=True/Merged")
	b.awaitTypes("ui_platform-mesh_io_page", "-ui_platform-mesh_io_theme")
	b.Kube.FailBefore(nil)
	b.awaitTypes("ui_platform-mesh_io_page", "ui_platform-mesh_io_theme", "folder")
}

func TestFailedModuleWriteDoesNotBlockOthers(t *testing.T) {
	const first = " /apis/core.platform-mesh.io/v1alpha1/authorizationmodels/gadgets-demo"
	gadgets := definition{"example.com", "gadgets", "Gadget", "v1alpha1", "demo"}
	b := newTestEnv(t)
	b.StartReflector()
	b.serve(ordinary(), unprivileged)
	b.applyStore("demo", withAccounts)
	b.Kube.FailBefore(failing("PATCH" + first))
	b.define(gadgets, widgets("example.com", "demo"))
	b.applyModule("docs", "demo", dsl("folder"))
	b.awaitTypes("example_com_widget", "folder", "-example_com_gadget")
	b.AwaitNoCalls()
	b.Kube.FailBefore(nil)
	b.awaitTypes("example_com_gadget")
	b.AwaitNoCalls()

	b.Kube.FailBefore(failing("DELETE" + first))
	gadgets.store = ""
	b.define(gadgets, widgets("example.com", ""))
	b.AwaitGone(kinds.AuthorizationModels(), "widgets-demo")
	b.awaitTypes("-example_com_widget", "example_com_gadget")
	b.AwaitNoCalls()
	b.Kube.FailBefore(nil)
	b.AwaitGone(kinds.AuthorizationModels(), "gadgets-demo")
	b.awaitTypes("-example_com_gadget")
}

func TestAPIBindingFinalizerIsRemovedLast(t *testing.T) {
	b := newEnvWithBoundWidgets(t)
	for kind, name := range map[kinds.Kind]string{
		kinds.APIExports(): "widgets.example.com", kinds.APIResourceSchemas(): "v1.widgets.example.com",
		kinds.AccountInfos(): "account", kinds.Stores(): "demo",
	} {
		b.Delete(kind, name)
	}
	b.await("demo", "Deleting=True/Blocked")
	b.Delete(kinds.APIBindings(), "one")
	b.Delete(kinds.APIBindings(), "two")
	b.awaitUnbound("one")
	b.awaitUnbound("two")
	b.AwaitGone(kinds.AuthorizationModels(), "widgets-demo")
	b.AwaitGone(kinds.Stores(), "demo")
}

func TestAPIBindingOfMissingExportIsReleased(t *testing.T) {
	b := newTestEnv(t)
	b.kcp()
	b.StartReflector()
	b.serve(ordinary(), unprivileged)
	b.bind("one", "nothing.example.com")
	b.awaitHeld("one", true)
	b.Delete(kinds.APIBindings(), "one")
	b.awaitUnbound("one")
}

func TestPlatformAPIBindingIsReleased(t *testing.T) {
	b := newTestEnv(t)
	b.kcp()
	b.StartReflector()
	b.serve(ordinary(), unprivileged)
	b.bind("tenancy", "tenancy.kcp.io")
	b.SetFinalizers(kinds.APIBindings(), "", "tenancy", corev1alpha1.BindingFinalizer)
	b.awaitHeld("tenancy", false)
}

// publish publishes the present state of an object, as the watcher would.
func (b *testEnv) publish(kind kinds.Kind, name string) {
	b.T.Helper()
	api, err := kube.New(b.Kube.AdminConfig(), "local", "test")
	if err != nil {
		b.T.Fatal(err)
	}
	change, err := api.Get(b.T.Context(), kind, "", name)
	if err != nil {
		b.T.Fatal(err)
	}
	if _, err := publish.New(b.JS).PublishChange(b.T.Context(), change, 0, publish.PublicationOptions{}); err != nil {
		b.T.Fatal(err)
	}
}

func TestAPIBindingFinalizerWithOlderVersion(t *testing.T) {
	kind := kinds.APIBindings()
	kind.Version = kind.FallbackVersion
	b := newTestEnv(t)
	b.define(definition{kind.Group, kind.Resource, kind.Kind, kind.Version, ""})
	b.StartReflector()
	b.serve(ordinary(), unprivileged)
	b.apply(kind, "one", map[string]any{"spec": map[string]any{
		"reference": map[string]any{"export": map[string]any{"name": "widgets.example.com"}},
	}})
	b.publish(kind, "one")
	testenv.Eventually(t, soon, func() error {
		u, err := b.ResourceClient(kind).Get(t.Context(), "one", metav1.GetOptions{})
		if err == nil && !slices.Contains(u.GetFinalizers(), corev1alpha1.BindingFinalizer) {
			err = fmt.Errorf("finalizers are %v", u.GetFinalizers())
		}
		return err
	})
	b.Delete(kind, "one")
	b.publish(kind, "one")
	testenv.Eventually(t, soon, func() error {
		if _, err := b.ResourceClient(kind).Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the binding is there (%w)", err)
		}
		return nil
	})
}
