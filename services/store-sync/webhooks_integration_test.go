//go:build integration

package storesync_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	storesync "github.com/entail-dev/entail/services/store-sync"
	"github.com/entail-dev/entail/services/store-sync/internal/validating"
)

const typo = "module part\n\ntype part\n  relations\n    defin viewer: [user]\n"

// author is a user that may write AuthorizationModels and Stores, and may extend Stores.
const author = "author"

// author returns the objects of a kind for that user.
func (b *testEnv) author(kind kinds.Kind) dynamic.ResourceInterface {
	b.T.Helper()
	return b.Kube.DynamicClientAs(b.T, author).Resource(kind.GroupVersionResource())
}

func (b *testEnv) admitAuthor() {
	b.T.Helper()
	b.Kube.GrantUser(b.T, "", author, rbacv1.PolicyRule{
		APIGroups: []string{corev1alpha1.GroupVersion.Group}, Resources: []string{corev1alpha1.Stores, corev1alpha1.AuthorizationModels},
		Verbs: []string{"create", "update", "patch", "delete", "extend"},
	})
	b.Kube.DeleteWebhooksAfter(b.T, validating.Name)
}

// serveWebhooks starts a store-sync with webhooks.
func (b *testEnv) serveWebhooks() *testenv.RunningService {
	b.T.Helper()
	listener := testenv.ListenLoopback(b.T)
	return b.serve(func(c *storesync.Config) {
		c.Admission.Listener, c.Admission.URL = listener, "https://"+listener.Addr().String()
	})
}

func written(name, text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": corev1alpha1.GroupVersion.String(), "kind": kinds.AuthorizationModels().Kind, "metadata": map[string]any{"name": name},
		"spec": map[string]any{"storeRef": map[string]any{"name": "demo"}, "model": text},
	}}
}

func TestWebhookRefusesUnparsableText(t *testing.T) {
	b := newTestEnv(t)
	b.admitAuthor()
	models, stores := b.author(kinds.AuthorizationModels()), b.author(kinds.Stores())
	create := func(name, text string, options ...string) error {
		_, err := models.Create(t.Context(), written(name, text), metav1.CreateOptions{DryRun: options})
		return err
	}
	change := func(of dynamic.ResourceInterface, name, patch string, options ...string) error {
		_, err := of.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: options})
		return err
	}
	b.applyStore("demo")
	if err := create("earlier", typo); err != nil {
		t.Fatalf("while nobody is asked: %v", err)
	}
	running := b.serveWebhooks()
	// If no webhook answers in time, every text passes.
	refused := func(what string, write func() error) {
		t.Helper()
		testenv.Eventually(t, time.Minute, func() error {
			err := write()
			for _, says := range []string{"is invalid: spec.", "line 5:5: syntax error"} {
				if err == nil || !strings.Contains(err.Error(), says) {
					return fmt.Errorf("%s: %v, want %q", what, err, says)
				}
			}
			return nil
		})
	}
	refused("a new module", func() error { return create("another", typo, metav1.DryRunAll) })
	refused("a core", func() error {
		return change(stores, "demo", fmt.Sprintf(`{"spec":{"coreModule":%q}}`, typo), metav1.DryRunAll)
	})
	refused("a module that was wrong before", func() error {
		return change(models, "earlier", fmt.Sprintf(`{"spec":{"model":%q}}`, typo+"type more\n"), metav1.DryRunAll)
	})
	passes := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s is refused: %v", what, err)
		}
	}
	passes("a good one", create("good", strings.Replace(typo, "defin ", "define ", 1)))
	passes("tuples beside a text that stays", change(models, "earlier", `{"spec":{"tuples":[{"object":"part:1","relation":"viewer","user":"user:1"}]}}`))
	passes("a finalizer", change(models, "earlier", `{"metadata":{"finalizers":["example.com/held"]}}`))
	passes("a deletion", models.Delete(t.Context(), "earlier", metav1.DeleteOptions{}))
	passes("what lets it go", change(models, "earlier", `{"metadata":{"finalizers":null}}`))
	running.Stop()
	if err := create("later", typo); err != nil {
		t.Errorf("while nobody answers: %v", err)
	}
}
