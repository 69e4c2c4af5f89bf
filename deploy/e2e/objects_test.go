//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
)

// soon bounds steps that take well under a second on an idle machine; both cores may be busy.
const soon = 60 * time.Second

func resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "core.platform-mesh.io", Version: "v1alpha1", Resource: name}
}

// check checks a question such as "user:beth viewer document:roadmap".
func check(t *testing.T, m *machine, question string, want bool) {
	t.Helper()
	if err := answers(t.Context(), m, question, want); err != nil {
		t.Error(err)
	}
}

func answers(ctx context.Context, m *machine, question string, want bool) error {
	words := strings.Fields(question)
	got, err := m.tuples().Check(ctx, &tuplev1.CheckRequest{
		Store: "demo", Key: &tuplev1.TupleKey{User: words[0], Relation: words[1], Object: words[2]},
	})
	if err != nil {
		return err
	}
	if got.GetAllowed() != want {
		return fmt.Errorf("%s: allowed is %t", question, got.GetAllowed())
	}
	return nil
}

// applySamples applies the samples, as kubectl apply --server-side does, and returns for each who tells whether it is ready.
func applySamples(t *testing.T, m *machine, file string) (readiness []func(context.Context) error) {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(m.config(t)))
	if err != nil {
		t.Fatal(err)
	}
	mapper, objects := restmapper.NewDiscoveryRESTMapper(groups), m.objects(t)
	manifest, err := os.ReadFile(filepath.Join(root, "deploy", "samples", file))
	if err != nil {
		t.Fatal(err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), len(manifest))
	for {
		var object unstructured.Unstructured
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return readiness
		} else if err != nil {
			t.Fatal(err)
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			t.Fatal(err)
		}
		api := objects.Resource(mapping.Resource).Namespace(object.GetNamespace())
		if _, err := api.Apply(t.Context(), object.GetName(), &object, metav1.ApplyOptions{FieldManager: "kubectl"}); err != nil {
			t.Fatal(err)
		}
		readiness = append(readiness, func(ctx context.Context) error { return ready(ctx, api, object.GetName()) })
	}
}

// dropTuplesOf removes a user's tuples from the spec of the store.
func dropTuplesOf(t *testing.T, stores dynamic.ResourceInterface, user string) {
	t.Helper()
	store, err := stores.Get(t.Context(), "demo", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tuples, _, err := unstructured.NestedSlice(store.Object, "spec", "tuples")
	if err != nil {
		t.Fatal(err)
	}
	kept := []any{}
	for _, tuple := range tuples {
		if tuple, ok := tuple.(map[string]any); ok && tuple["user"] != user {
			kept = append(kept, tuple)
		}
	}
	if len(kept) == len(tuples) {
		t.Fatalf("%s has no tuple in the store", user)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"tuples": kept}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stores.Patch(t.Context(), "demo", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func ready(ctx context.Context, objects dynamic.ResourceInterface, name string) error {
	got, err := condition(ctx, objects, name, "Ready")
	if err == nil && !strings.HasPrefix(got, "True") {
		err = fmt.Errorf("%s: condition Ready is %s", name, got)
	}
	return err
}

// condition returns the status, reason and message of a condition for the present generation.
func condition(ctx context.Context, objects dynamic.ResourceInterface, name, kind string) (string, error) {
	object, err := objects.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind && c["observedGeneration"] == object.GetGeneration() {
			return fmt.Sprintf("%v %v %v", c["status"], c["reason"], c["message"]), err
		}
	}
	return "missing", err
}

func gone(ctx context.Context, objects dynamic.ResourceInterface, name string) error {
	object, err := objects.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s is there, with finalizers %v", name, object.GetFinalizers())
	}
	return err
}

// field returns a field of the store, as text.
func field(t *testing.T, stores dynamic.ResourceInterface, path ...string) string {
	t.Helper()
	object, err := stores.Get(t.Context(), "demo", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(value)
}
