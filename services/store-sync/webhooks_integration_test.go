//go:build integration

package storesync_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testbed"
	storesync "github.com/entail-dev/entail/services/store-sync"
	"github.com/entail-dev/entail/services/store-sync/internal/guard"
)

const typo = "module part\n\ntype part\n  relations\n    defin viewer: [user]\n"

// author may write AuthorizationModels and Stores, and extend these.
const author = "author"

// author is that user's hands on the objects of a kind.
func (b *bed) author(kind kinds.Kind) dynamic.ResourceInterface {
	b.T.Helper()
	cfg := b.Kube.Admin()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: author}
	return dynamic.NewForConfigOrDie(cfg).Resource(kind.Served())
}

func (b *bed) admitAuthor() {
	b.T.Helper()
	rights := kubernetes.NewForConfigOrDie(b.Kube.Admin()).RbacV1()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: author}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{corev1alpha1.GroupVersion.Group}, Resources: []string{corev1alpha1.Stores, corev1alpha1.AuthorizationModels},
		Verbs: []string{"create", "update", "patch", "delete", "extend"},
	}}}
	bound := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: author},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: author}},
	}
	if _, err := rights.ClusterRoles().Create(b.T.Context(), role, metav1.CreateOptions{}); err != nil {
		b.T.Fatal(err)
	}
	if _, err := rights.ClusterRoleBindings().Create(b.T.Context(), bound, metav1.CreateOptions{}); err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(func() {
		ctx := context.WithoutCancel(b.T.Context())
		_ = rights.ClusterRoles().Delete(ctx, author, metav1.DeleteOptions{})
		_ = rights.ClusterRoleBindings().Delete(ctx, author, metav1.DeleteOptions{})
		webhooks := kubernetes.NewForConfigOrDie(b.Kube.Admin()).AdmissionregistrationV1().ValidatingWebhookConfigurations()
		_ = webhooks.Delete(ctx, guard.Name, metav1.DeleteOptions{})
	})
}

// serveWebhooks starts a store-sync that the API server asks about texts.
func (b *bed) serveWebhooks() *testbed.Running {
	b.T.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.T.Fatal(err)
	}
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

func TestATextThatDoesNotParseIsRefusedWhenSomebodyWritesIt(t *testing.T) {
	b := newBed(t)
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
	// Where nobody answers in time, everything passes.
	refused := func(what string, write func() error) {
		t.Helper()
		testbed.Eventually(t, time.Minute, func() error {
			err := write()
			for _, says := range []string{"line 5:5: syntax error", "correct it and apply again"} {
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
