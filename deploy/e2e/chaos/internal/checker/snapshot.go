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

// Snapshot holds all objects at about one moment; each kind is listed separately.
type Snapshot struct {
	byKind map[schema.GroupVersionResource][]unstructured.Unstructured
}

// TakeSnapshot reads the objects of every kind.
func TakeSnapshot(ctx context.Context, d *workload.Driver) (*Snapshot, error) {
	s := &Snapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
	for _, k := range workload.Kinds() {
		items, err := d.List(ctx, k)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", k.Resource.Resource, err)
		}
		s.byKind[k.Resource] = items
	}
	return s, nil
}

// All returns the objects of a kind.
func (s *Snapshot) All(kind schema.GroupVersionResource) []unstructured.Unstructured {
	return s.byKind[kind]
}

// MarshalJSON returns all objects, by kind.
func (s *Snapshot) MarshalJSON() ([]byte, error) {
	byResource := map[string][]unstructured.Unstructured{}
	for kind, objects := range s.byKind {
		byResource[kind.Resource] = objects
	}
	return json.Marshal(byResource)
}

// Live returns the objects of a kind that are not being deleted.
func (s *Snapshot) Live(kind schema.GroupVersionResource) []unstructured.Unstructured {
	var live []unstructured.Unstructured
	for _, o := range s.byKind[kind] {
		if o.GetDeletionTimestamp() == nil {
			live = append(live, o)
		}
	}
	return live
}

// Versions returns the resource version of each object, by kind and name.
func (s *Snapshot) Versions() map[string]string {
	versions := map[string]string{}
	for kind, objects := range s.byKind {
		for _, o := range objects {
			versions[fmt.Sprintf("%s/%s/%s", kind.Resource, o.GetNamespace(), o.GetName())] = o.GetResourceVersion()
		}
	}
	return versions
}

// field returns a text field of an object, or an empty text if it is absent.
func field(o unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}

// condition returns a condition of an object, or the zero value if it is absent.
func condition(o unstructured.Unstructured, name string) metav1.Condition {
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

// wantCondition requires a condition for the present generation that is True, or that is not True.
func wantCondition(o unstructured.Unstructured, name string, want bool) error {
	c := condition(o, name)
	if is := c.Status == metav1.ConditionTrue; is != want || c.ObservedGeneration != o.GetGeneration() {
		return fmt.Errorf("%s is %q at generation %d (%s: %s), want true=%t at generation %d",
			name, c.Status, c.ObservedGeneration, c.Reason, c.Message, want, o.GetGeneration())
	}
	return nil
}

// wantFinalizers requires that an object has these finalizers. It may have others.
func wantFinalizers(o unstructured.Unstructured, want ...string) error {
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
