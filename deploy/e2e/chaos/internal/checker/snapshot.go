package checker

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// ObjectSnapshot holds all objects at about one moment; each kind is listed separately.
type ObjectSnapshot struct {
	byKind map[schema.GroupVersionResource][]unstructured.Unstructured
}

// TakeSnapshot reads the objects of every kind.
func TakeSnapshot(ctx context.Context, d *workload.Driver) (*ObjectSnapshot, error) {
	s := &ObjectSnapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
	for _, k := range workload.AllKinds() {
		items, err := d.List(ctx, k)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", k.Resource.Resource, err)
		}
		s.byKind[k.Resource] = items
	}
	return s, nil
}

// ObjectsOfKind returns the objects of a kind.
func (s *ObjectSnapshot) ObjectsOfKind(kind schema.GroupVersionResource) []unstructured.Unstructured {
	return s.byKind[kind]
}

// MarshalJSON returns all objects, by kind.
func (s *ObjectSnapshot) MarshalJSON() ([]byte, error) {
	byResource := map[string][]unstructured.Unstructured{}
	for kind, objects := range s.byKind {
		byResource[kind.Resource] = objects
	}
	return json.Marshal(byResource)
}

// UndeletedOfKind returns the objects of a kind that are not being deleted.
func (s *ObjectSnapshot) UndeletedOfKind(kind schema.GroupVersionResource) []unstructured.Unstructured {
	var live []unstructured.Unstructured
	for _, o := range s.byKind[kind] {
		if o.GetDeletionTimestamp() == nil {
			live = append(live, o)
		}
	}
	return live
}

// ResourceVersions returns the resource version of each object, by kind and name.
func (s *ObjectSnapshot) ResourceVersions() map[string]string {
	versions := map[string]string{}
	for kind, objects := range s.byKind {
		for _, o := range objects {
			versions[fmt.Sprintf("%s/%s/%s", kind.Resource, o.GetNamespace(), o.GetName())] = o.GetResourceVersion()
		}
	}
	return versions
}

// textField returns a text field of an object, or an empty text if it is absent.
func textField(o unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}

// conditionOf returns a condition of an object, or the zero value if it is absent.
func conditionOf(o unstructured.Unstructured, name string) metav1.Condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		c, ok := item.(map[string]any)
		if !ok || c["type"] != name {
			continue
		}
		generation, _, _ := unstructured.NestedInt64(c, "observedGeneration")
		text := func(key string) string { s, _, _ := unstructured.NestedString(c, key); return s }
		return metav1.Condition{
			Type: name, Status: metav1.ConditionStatus(text("status")), ObservedGeneration: generation,
			Reason: text("reason"), Message: text("message"),
		}
	}
	return metav1.Condition{}
}

// requireCondition requires a condition for the present generation that is True, or that is not True.
func requireCondition(o unstructured.Unstructured, name string, want bool) error {
	c := conditionOf(o, name)
	if is := c.Status == metav1.ConditionTrue; is != want || c.ObservedGeneration != o.GetGeneration() {
		return fmt.Errorf("%s is %q at generation %d (%s: %s), want true=%t at generation %d",
			name, c.Status, c.ObservedGeneration, c.Reason, c.Message, want, o.GetGeneration())
	}
	return nil
}

// requireFinalizers requires that an object has these finalizers. It may have others.
func requireFinalizers(o unstructured.Unstructured, want ...string) error {
	held := map[string]bool{}
	for _, f := range o.GetFinalizers() {
		held[f] = true
	}
	for _, f := range want {
		if !held[f] {
			return fmt.Errorf("finalizers are %v, want %v", o.GetFinalizers(), want)
		}
	}
	return nil
}
