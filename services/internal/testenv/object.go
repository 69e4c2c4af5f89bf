package testenv

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// objectTimeout bounds the time in which a service handles a change, even on a busy machine.
const objectTimeout = time.Minute

// Apply applies an object with a spec, as "kubectl apply --server-side" does. For a namespaced object, pass the kind
// with its namespace. See [kinds.Kind.InNamespace].
func (k *KubeServer) Apply(t testing.TB, kind kinds.Kind, name string, spec any) {
	t.Helper()
	if _, err := k.ApplyFields(t, kind, name, map[string]any{"spec": spec}); err != nil {
		t.Fatalf("applying %s %s: %v", kind.Kind, name, err)
	}
}

// ApplyFields applies an object with any fields and returns the answer of the API server. See [KubeServer.Apply].
func (k *KubeServer) ApplyFields(t testing.TB, kind kinds.Kind, name string, fields map[string]any) (*unstructured.Unstructured, error) {
	t.Helper()
	return k.DynamicClient(t).Resource(kind.GroupVersionResource()).Namespace(kind.Namespace).
		Patch(t.Context(), name, types.ApplyPatchType, encodeObject(t, kind, name, fields), metav1.PatchOptions{FieldManager: "test", Force: new(true)})
}

// encodeObject returns the JSON of an object with the fields and its type and name.
func encodeObject(t testing.TB, kind kinds.Kind, name string, fields map[string]any) []byte {
	t.Helper()
	metadata := map[string]any{}
	if given, ok := fields["metadata"].(map[string]any); ok {
		metadata = maps.Clone(given)
	}
	metadata["name"] = name
	fields = maps.Clone(fields)
	fields["apiVersion"], fields["kind"], fields["metadata"] = kind.GroupVersionResource().GroupVersion().String(), kind.Kind, metadata
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// ApplyStatus applies fields of an object's status. service is the field manager.
func (b *Env) ApplyStatus(service string, kind kinds.Kind, name string, status any) {
	b.T.Helper()
	_, err := b.namespacedClient(kind).Patch(b.T.Context(), name, types.ApplyPatchType, encodeObject(b.T, kind, name, map[string]any{"status": status}),
		metav1.PatchOptions{FieldManager: service, Force: new(true)}, "status")
	if err != nil {
		b.T.Fatal(err)
	}
}

// Patch applies a JSON merge patch to an object, or to a subresource of it.
func (b *Env) Patch(kind kinds.Kind, name, patch string, subresources ...string) {
	b.T.Helper()
	options := metav1.PatchOptions{FieldManager: "test"}
	if _, err := b.namespacedClient(kind).Patch(b.T.Context(), name, types.MergePatchType, []byte(patch), options, subresources...); err != nil {
		b.T.Fatal(err)
	}
}

// RemoveFinalizers removes all finalizers of an object.
func (b *Env) RemoveFinalizers(kind kinds.Kind, name string) {
	b.T.Helper()
	b.SetFinalizers(kind, kind.Namespace, name)
}

// SetFinalizers replaces the finalizers of an object.
func (b *Env) SetFinalizers(kind kinds.Kind, namespace, name string, finalizers ...string) {
	b.T.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	if err != nil {
		b.T.Fatal(err)
	}
	b.Patch(kind.InNamespace(namespace), name, string(patch))
}

// AwaitNoFinalizers waits until an object has no finalizers.
func (b *Env) AwaitNoFinalizers(kind kinds.Kind, namespace, name string) {
	b.T.Helper()
	Eventually(b.T, settleTimeout, func() error {
		var o metav1.PartialObjectMetadata
		err := b.Get(kind.InNamespace(namespace), name, &o)
		if err == nil && len(o.Finalizers) > 0 {
			err = fmt.Errorf("%s %s has the finalizers %v", kind.Kind, name, o.Finalizers)
		}
		return err
	})
}

// ResourceClient returns a client for the objects of a kind, in any namespace.
func (b *Env) ResourceClient(kind kinds.Kind) dynamic.NamespaceableResourceInterface {
	return b.Objects.Resource(kind.GroupVersionResource())
}

// namespacedClient returns a client for the objects of a kind in the kind's namespace.
func (b *Env) namespacedClient(kind kinds.Kind) dynamic.ResourceInterface {
	return b.ResourceClient(kind).Namespace(kind.Namespace)
}

// Delete deletes an object. An object with finalizers stays until they are removed.
func (b *Env) Delete(kind kinds.Kind, name string) {
	b.T.Helper()
	if err := b.namespacedClient(kind).Delete(b.T.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.T.Fatal(err)
	}
}

// AwaitGone waits until an object does not exist.
func (b *Env) AwaitGone(kind kinds.Kind, name string) {
	b.T.Helper()
	Eventually(b.T, objectTimeout, func() error {
		u, err := b.namespacedClient(kind).Get(b.T.Context(), name, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("%s %s still exists: finalizers %v, status %v", kind.Kind, name, u.GetFinalizers(), u.Object["status"])
		}
		return ignoreNotFound(err)
	})
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// List returns the objects of a kind, in the kind's namespace or in all namespaces. The list is empty if the kind is
// not served.
func (b *Env) List(kind kinds.Kind) *unstructured.UnstructuredList {
	b.T.Helper()
	list, err := b.namespacedClient(kind).List(b.T.Context(), metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return &unstructured.UnstructuredList{}
	}
	if err != nil {
		b.T.Fatal(err)
	}
	return list
}

// DecodeObject returns an object as a typed value.
func DecodeObject[T any](t testing.TB, u unstructured.Unstructured) *T {
	t.Helper()
	object := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// ListTyped returns the result of [Env.List] as typed values.
func ListTyped[T any](b *Env, kind kinds.Kind) []*T {
	b.T.Helper()
	items := b.List(kind).Items
	all := make([]*T, len(items))
	for i, u := range items {
		all[i] = DecodeObject[T](b.T, u)
	}
	return all
}

// Get reads an object into a typed value.
func (b *Env) Get(kind kinds.Kind, name string, into any) error {
	b.T.Helper()
	u, err := b.namespacedClient(kind).Get(b.T.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

// AwaitObject reads an object until check returns nil, and returns the object.
func AwaitObject[T any](b *Env, kind kinds.Kind, name string, check func(*T) error) *T {
	b.T.Helper()
	var object *T
	Eventually(b.T, objectTimeout, func() error {
		object = new(T)
		if err := b.Get(kind, name, object); err != nil {
			return err
		}
		return check(object)
	})
	return object
}

// conditionedObject holds the metadata and conditions of an object of any kind.
type conditionedObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// AwaitCondition waits until a condition has the given reason at the object's current generation. It returns the
// condition.
func (b *Env) AwaitCondition(kind kinds.Kind, name, conditionType, reason string) metav1.Condition {
	b.T.Helper()
	var found metav1.Condition
	AwaitObject(b, kind, name, func(o *conditionedObject) error {
		i := slices.IndexFunc(o.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == conditionType && c.Reason == reason && c.ObservedGeneration == o.Generation
		})
		if i < 0 {
			return fmt.Errorf("%s %s has no condition %s with reason %s at generation %d: %+v",
				kind.Kind, name, conditionType, reason, o.Generation, o.Status.Conditions)
		}
		found = o.Status.Conditions[i]
		return nil
	})
	return found
}
