package kube

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

const storeJSON = `{
  "apiVersion": "core.platform-mesh.io/v1alpha1", "kind": "Store",
  "metadata": {
    "name": "demo", "uid": "u-1", "resourceVersion": "42", "generation": 3,
    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"secret\":1}", "kept": "yes"},
    "managedFields": [{"manager": "kubectl"}]
  },
  "spec": {"coreModule": "module core"},
  "status": {"storeId": "s-1"}
}`

func decodeStore(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(storeJSON)); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestAChangeCarriesTheObjectWithoutManagedFields(t *testing.T) {
	u, untouched := decodeStore(t), decodeStore(t)
	change, err := Origin{Cluster: "local", Epoch: "e-1"}.Change(kinds.Stores(), u)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(u, untouched) {
		t.Error("the object given was changed")
	}
	var object map[string]any
	if err := json.Unmarshal(change.Object, &object); err != nil {
		t.Fatal(err)
	}
	want := decodeStore(t)
	unstructured.RemoveNestedField(want.Object, "metadata", "managedFields")
	if !reflect.DeepEqual(object, jsonRoundTrip(t, want.Object)) {
		t.Errorf("the object is %v; want %v", object, want.Object)
	}
	change.Object = nil
	expected := event.Change{
		Key:     event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "demo"},
		Version: "v1alpha1", Kind: "Store", UID: "u-1", ResourceVersion: "42", Generation: 3, Epoch: "e-1",
	}
	if !reflect.DeepEqual(change, expected) {
		t.Errorf("got %+v; want %+v", change, expected)
	}
}

func TestAMetadataOnlyKindGivesNothingElseAway(t *testing.T) {
	kind := kinds.Stores()
	kind.MetadataOnly = true
	change, err := Origin{}.Change(kind, decodeStore(t))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(change.Object, &object); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "core.platform-mesh.io/v1alpha1", "kind": "Store",
		"metadata": map[string]any{
			"name": "demo", "uid": "u-1", "resourceVersion": "42", "generation": 3.0, "annotations": map[string]any{"kept": "yes"},
		},
	}
	if !reflect.DeepEqual(object, want) {
		t.Errorf("got %v; want %v", object, want)
	}
}

func TestTheSameObjectGivesTheSameBytes(t *testing.T) {
	var first string
	for range 50 {
		change, err := Origin{}.Change(kinds.Stores(), decodeStore(t))
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(change.Object)
		}
		if string(change.Object) != first {
			t.Fatalf("got %s; want %s", change.Object, first)
		}
	}
}

func jsonRoundTrip(t *testing.T, in map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
