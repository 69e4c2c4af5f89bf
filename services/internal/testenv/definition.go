package testenv

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// undefineTimeout bounds the time until a CustomResourceDefinition is deleted. The API server waits up to a minute
// until no object of the kind exists, and then tries again.
const (
	undefineTimeout = 3 * time.Minute
	undefinePoll    = 20 * time.Millisecond
)

// CRDFields returns the fields of a CustomResourceDefinition for a cluster-scoped kind with a status and
// arbitrary fields.
func CRDFields(kind kinds.Kind, labels map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
		"group": kind.Group, "scope": "Cluster",
		"names": map[string]any{"plural": kind.Resource, "kind": kind.Kind, "singular": strings.ToLower(kind.Kind), "listKind": kind.Kind + "List"},
		"versions": []any{map[string]any{
			"name": kind.Version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}},
	}}
}

// ApplyCRD makes the API server serve a kind as [CRDFields] defines it, until the test ends.
func (k *KubeServer) ApplyCRD(t testing.TB, kind kinds.Kind) {
	t.Helper()
	name := kind.Resource + "." + kind.Group
	if _, err := k.ApplyFields(t, kinds.CustomResourceDefinitions(), name, CRDFields(kind, nil)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.DeleteCRD(t, name) })
	k.awaitServed(t, []kinds.Kind{kind})
}

// DeleteCRD deletes a CustomResourceDefinition and waits until it no longer exists, because the next test must
// not find it.
func (k *KubeServer) DeleteCRD(t testing.TB, name string) {
	t.Helper()
	definitions := k.DynamicClient(t).Resource(kinds.CustomResourceDefinitions().GroupVersionResource())
	var last *unstructured.Unstructured
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), undefinePoll, undefineTimeout, true, func(ctx context.Context) (bool, error) {
		err := definitions.Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if is, err := definitions.Get(ctx, name, metav1.GetOptions{}); err == nil {
			last = is
		}
		return false, nil
	})
	if err != nil {
		t.Errorf("definition %s stays: %v; its last state is %v", name, err, last)
	}
}
