//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// TestEntailUp runs every story that needs neither flags nor a restart, one after another on one `entail up`. A start
// takes longer than all of these stories. Each story begins in a cluster without objects.
func TestEntailUp(t *testing.T) {
	state := t.TempDir()
	t.Setenv("KUBECONFIG", "/nowhere/kubeconfig")
	m := up(t, state)
	if !strings.Contains(m.words.String(), "/nowhere/kubeconfig) is not used; --use-cluster") {
		t.Errorf("with KUBECONFIG and without a flag: got %s", m.words)
	}
	for _, story := range []struct {
		name string
		run  func(*testing.T, *machine)
	}{
		{"state belongs to one process", func(t *testing.T, m *machine) { stateBelongsToOneProcess(t, m, state) }},
		{"the journey of the README", readmeJourney},
		{"policy documents become a model", policyDocumentsBecomeModel},
		{"implied roles become bindings", impliedRolesBecomeBindings},
		{"bindings of IAM give access", iamBindingsGiveAccess},
		{"the samples of IAM are ready", iamSamplesAreReady},
		{"the API server accepts every overlay", overlaysAreAccepted},
		{"the API server asks Entail", apiServerAsksEntail},
	} {
		t.Run(story.name, func(t *testing.T) { story.run(t, m) })
		removeObjects(t, m)
	}
	m.stop(t, syscall.SIGTERM)
}

// removeObjects deletes every custom resource except the Store of IAM, which Entail creates, and every RoleBinding in
// the default namespace. It waits until they are gone.
func removeObjects(t *testing.T, m *machine) {
	t.Helper()
	objects := m.objects(t)
	kinds := customKinds(t, objects)
	eventually(t, soon, "all objects are removed", func(ctx context.Context) error {
		errs := []error{removeAll(ctx, objects.Resource(rbacv1.SchemeGroupVersion.WithResource("rolebindings")).Namespace("default"), "")}
		for kind, namespace := range kinds {
			kept := ""
			if kind == resource("stores") {
				kept = "iam"
			}
			errs = append(errs, removeAll(ctx, objects.Resource(kind).Namespace(namespace), kept))
		}
		return errors.Join(errs...)
	})
}

// removeAll deletes all objects except one, and returns an error while any exists.
func removeAll(ctx context.Context, objects dynamic.ResourceInterface, kept string) error {
	list, err := objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range list.Items {
		if o.GetName() != kept {
			errs = append(errs, fmt.Errorf("%s %s is there", o.GetKind(), o.GetName()), objects.Delete(ctx, o.GetName(), metav1.DeleteOptions{}))
		}
	}
	return errors.Join(errs...)
}

// customKinds returns every kind that a CustomResourceDefinition defines, with the namespace that stories use for it.
func customKinds(t *testing.T, objects dynamic.Interface) map[schema.GroupVersionResource]string {
	t.Helper()
	definitions, err := objects.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(definitions.Items) < 10 {
		t.Fatalf("definitions: got %d, %v, want at least 10", len(definitions.Items), err)
	}
	kinds := map[schema.GroupVersionResource]string{}
	for _, definition := range definitions.Items {
		text := func(path ...string) string {
			value, _, err := unstructured.NestedString(definition.Object, path...)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
		versions, _, err := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
		if err != nil || len(versions) == 0 {
			t.Fatalf("%s: versions %q, %v", definition.GetName(), versions, err)
		}
		namespace := ""
		if text("spec", "scope") == "Namespaced" {
			namespace = "default"
		}
		kinds[schema.GroupVersionResource{Group: text("spec", "group"), Version: versions[len(versions)-1], Resource: text("spec", "names", "plural")}] = namespace
	}
	return kinds
}
