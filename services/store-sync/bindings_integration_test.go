//go:build integration

package storesync_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// kcp makes the API server serve kcp's kinds. All objects are in one logical cluster here.
func (b *testEnv) kcp() {
	b.T.Helper()
	for _, kind := range []kinds.Kind{kinds.APIBindings(), kinds.APIExports(), kinds.APIResourceSchemas(), kinds.AccountInfos()} {
		b.define(definition{kind.Group, kind.Resource, kind.Kind, kind.Version, ""})
	}
}

func (b *testEnv) account(org string) {
	b.T.Helper()
	location := map[string]any{"name": org, "originClusterId": "local", "generatedClusterId": "generated"}
	b.apply(kinds.AccountInfos(), "account", map[string]any{"spec": map[string]any{"account": location, "organization": location}})
}

// export offers resources as widgets.example.com, each with a schema v1.<plural>.<group>.
func (b *testEnv) export(resources ...definition) {
	b.T.Helper()
	var listed []any
	for _, d := range resources {
		listed = append(listed, map[string]any{"group": d.group, "name": d.plural, "schema": "v1." + d.name()})
		b.apply(kinds.APIResourceSchemas(), "v1."+d.name(), map[string]any{"spec": map[string]any{
			"group": d.group, "scope": "Cluster", "names": map[string]any{"plural": d.plural, "singular": strings.ToLower(d.kind), "kind": d.kind},
		}})
	}
	b.apply(kinds.APIExports(), "widgets.example.com", map[string]any{"spec": map[string]any{"resources": listed}})
}

// bind binds an export, as kcp would.
func (b *testEnv) bind(name, export string) {
	b.T.Helper()
	reference := map[string]any{"export": map[string]any{"path": "root:providers", "name": export}}
	b.apply(kinds.APIBindings(), name, map[string]any{"spec": map[string]any{"reference": reference}})
	b.Patch(kinds.APIBindings(), name, `{"status":{"apiExportClusterName":"local"}}`, "status")
}

func (b *testEnv) awaitHeld(binding string, want bool) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		u, err := b.ResourceClient(kinds.APIBindings()).Get(b.T.Context(), binding, metav1.GetOptions{})
		if err == nil && slices.Contains(u.GetFinalizers(), corev1alpha1.BindingFinalizer) != want {
			err = fmt.Errorf("finalizers are %v", u.GetFinalizers())
		}
		return err
	})
}

func (b *testEnv) awaitUnbound(binding string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		u, err := b.ResourceClient(kinds.APIBindings()).Get(b.T.Context(), binding, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("binding is there, finalizers %v (%w)", u.GetFinalizers(), err)
		}
		return nil
	})
}

// newEnvWithBoundWidgets returns a bed with the Store demo, whose organization has bound widgets twice.
func newEnvWithBoundWidgets(t *testing.T) *testEnv {
	t.Helper()
	b := newTestEnv(t)
	b.kcp()
	b.StartReflector()
	b.serve(ordinary(), unprivileged)
	b.applyStore("demo", withAccounts)
	b.account("demo")
	b.export(widgets("example.com", ""))
	b.bind("one", "widgets.example.com")
	b.bind("two", "widgets.example.com")
	b.awaitModule("widgets-demo", "Merged=True/Merged")
	b.awaitHeld("one", true)
	b.awaitHeld("two", true)
	return b
}

func TestBoundAPIStaysUntilLastBindingIsDeleted(t *testing.T) {
	b := newEnvWithBoundWidgets(t)
	b.awaitTypes("example_com_widget")
	var m corev1alpha1.AuthorizationModel
	if err := b.Get(kinds.AuthorizationModels(), "widgets-demo", &m); err != nil || m.Spec.StoreRef != (corev1alpha1.StoreRef{Name: "demo", Cluster: "local"}) {
		t.Errorf("it refers to %+v (%v)", m.Spec.StoreRef, err)
	}
	b.AwaitNoCalls()
	b.CheckNoWrites("a resync", func() { b.RequestResync(topology.StoreSync) })

	b.export(widgets("example.com", ""), definition{"example.com", "things", "Thing", "", ""})
	b.awaitModule("things-demo", "Merged=True/Merged")
	b.export(widgets("example.com", ""))
	b.AwaitGone(kinds.AuthorizationModels(), "things-demo")
	b.Delete(kinds.APIBindings(), "one")
	b.awaitUnbound("one")
	b.AwaitNoCalls()
	b.awaitModule("widgets-demo", "Merged=True/Merged")
	b.Delete(kinds.APIBindings(), "two")
	b.awaitUnbound("two")
	b.AwaitGone(kinds.AuthorizationModels(), "widgets-demo")
	b.awaitTypes("-example_com_widget")
}

func TestDeletionDuringDowntimeIsCleanedUp(t *testing.T) {
	b := newTestEnv(t)
	b.kcp()
	b.StartReflector()
	r := b.serve(ordinary(), unprivileged)
	b.applyStore("demo", withAccounts)
	b.account("demo")
	b.export(widgets("example.com", ""))
	b.bind("one", "widgets.example.com")
	b.awaitModule("widgets-demo", "Merged=True/Merged")
	b.awaitHeld("one", true)
	r.Stop()
	for kind, name := range map[kinds.Kind]string{
		kinds.APIBindings(): "one", kinds.APIExports(): "widgets.example.com", kinds.AccountInfos(): "account",
	} {
		b.Delete(kind, name)
	}
	b.serve(ordinary(), unprivileged)
	b.awaitUnbound("one")
	b.AwaitGone(kinds.AuthorizationModels(), "widgets-demo")
}
