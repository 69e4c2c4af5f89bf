package kube

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

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

func read(t *testing.T, kind kinds.Kind, raw string) Object {
	t.Helper()
	o, err := ClusterOrigin{Cluster: "local", Epoch: "e-1"}.DecodeObject(kind, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestChangeHasOrigin(t *testing.T) {
	change := read(t, kinds.Stores(), storeJSON).Change
	change.Object = nil
	want := event.Change{
		Key:     event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "demo"},
		Version: "v1alpha1", Kind: "Store", UID: "u-1", ResourceVersion: "42", Generation: 3, Epoch: "e-1",
	}
	if !reflect.DeepEqual(change, want) {
		t.Errorf("got %+v; want %+v", change, want)
	}
}

func TestDecodeObjectRemovesManagedFields(t *testing.T) {
	for name, raw := range map[string]string{
		"an object":   storeJSON,
		"odd values":  strings.Replace(storeJSON, `"spec": {`, `"spec":{"n":9007199254740993,"f":1.5,"e":[],"o":{},"z":null,"t":"<&> \u2028",`, 1),
		"in deletion": strings.Replace(storeJSON, `"annotations"`, `"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a/b"],"annotations"`, 1),
		"without any": strings.Replace(storeJSON, `"managedFields"`, `"other"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			want := values(t, []byte(raw))
			maps.DeleteFunc(want["metadata"].(map[string]any), func(name string, _ any) bool { return name == "managedFields" })
			if object := values(t, read(t, kinds.Stores(), raw).Change.Object); !reflect.DeepEqual(object, want) {
				t.Errorf("the object is %v; want %v", object, want)
			}
		})
	}
}

func TestDecodeObjectOfMetadataOnlyKindDropsContent(t *testing.T) {
	kind := kinds.Stores()
	kind.MetadataOnly = true
	want := values(t, []byte(`{"apiVersion": "core.platform-mesh.io/v1alpha1", "kind": "Store",
		"metadata": {"name": "demo", "uid": "u-1", "resourceVersion": "42", "generation": 3, "annotations": {"kept": "yes"}}}`))
	if object := values(t, read(t, kind, storeJSON).Change.Object); !reflect.DeepEqual(object, want) {
		t.Errorf("got %v; want %v", object, want)
	}
}

func TestDecodeObjectOfReferencedOnlyKindHasIdentityOnly(t *testing.T) {
	raw := `{"apiVersion":"v1","kind":"Secret","type":"Opaque","immutable":true,"data":{"k":"c2VjcmV0"},"stringData":{"k":"secret"},"metadata":{
		"name":"passwords","namespace":"team-a","uid":"u-1","resourceVersion":"42","creationTimestamp":"2026-01-02T03:04:05Z","generateName":"secret",
		"labels":{"secret":"secret"},"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"secret","secret":"secret"},
		"finalizers":["secret/x"],"ownerReferences":[{"name":"secret"}],"managedFields":[{"manager":"secret"}]}}`
	want := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"passwords","namespace":"team-a","resourceVersion":"42","uid":"u-1"}}`
	if is := string(read(t, kinds.Secrets(), raw).Change.Object); is != want {
		t.Errorf("got object %s, want %s", is, want)
	}
}

// Otherwise the message would be too large for NATS, and the object's earlier state would remain in effect.
func TestDecodeObjectDropsTooManyOwners(t *testing.T) {
	kind := kinds.TargetKind(event.GroupResource{Resource: "configmaps"}, "v1", "ConfigMap")
	of := func(name string) string {
		return string(read(t, kind, `{"metadata":{"name":"one","uid":"u-1","resourceVersion":"42","labels":{"l":"v"},
			"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"`+name+`","uid":"1"}]}}`).Change.Object)
	}
	want := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"1"}],"resourceVersion":"42","uid":"u-1"}}`
	if is := of("n"); is != want {
		t.Errorf("got object %s, want %s", is, want)
	}
	if is := of(strings.Repeat("n", maxOwners)); is != `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","resourceVersion":"42","uid":"u-1"}}` {
		t.Errorf("of one with very many owners travels %.200s", is)
	}
}

func TestEncodingIsDeterministic(t *testing.T) {
	first := string(read(t, kinds.Stores(), storeJSON).Change.Object)
	for range 50 {
		if again := string(read(t, kinds.Stores(), storeJSON).Change.Object); again != first {
			t.Fatalf("got %s; want %s", again, first)
		}
	}
}

func TestDecodeObjectRefusesInvalidObject(t *testing.T) {
	for _, raw := range []string{
		"", "[]", "{}", `{"metadata":7}`, `{"metadata":{"generation":"x"}}`,
		strings.Replace(storeJSON, `"demo"`, `""`, 1), strings.Replace(storeJSON, `"u-1"`, `""`, 1), strings.Replace(storeJSON, `"42"`, `""`, 1),
	} {
		if o, err := (ClusterOrigin{}).DecodeObject(kinds.Stores(), []byte(raw)); err == nil {
			t.Errorf("%q was read as %+v", raw, o)
		}
	}
}

// values returns decoded JSON with numbers as they are written.
func values(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var value map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
