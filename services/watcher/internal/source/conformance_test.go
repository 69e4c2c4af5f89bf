package source

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
)

// TestTheBusAndTheAPIServerTellTheSameOfAnObject holds the two readers of API objects together:
// services compare what the watcher publishes with what they read themselves.
func TestTheBusAndTheAPIServerTellTheSameOfAnObject(t *testing.T) {
	secret := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"n","uid":"u","resourceVersion":"9",
"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"hunter2","kept":"yes"}},"data":{"key":"aHVudGVyMg=="},"type":"Opaque"}`
	for name, c := range map[string]struct {
		kind kinds.Kind
		raw  string
	}{
		"an object":                 {kinds.Stores(), storeJSON},
		"its annotations":           {kinds.Stores(), strings.Replace(storeJSON, `"labels"`, `"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"},"labels"`, 1)},
		"odd values":                {kinds.Stores(), strings.Replace(storeJSON, `"spec":{`, `"spec":{"n":9007199254740993,"f":1.5,"e":[],"o":{},"z":null,"t":"<&> ",`, 1)},
		"in deletion":               {kinds.Stores(), strings.Replace(storeJSON, `"labels"`, `"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a/b"],"labels"`, 1)},
		"of which metadata travels": {secrets(), secret},
		"without annotations":       {secrets(), strings.Replace(secret, `"annotations"`, `"labels"`, 1)},
		"with no annotation left":   {secrets(), strings.Replace(secret, `,"kept":"yes"`, "", 1)},
		"whose status nobody reads": {withoutStatus(), storeJSON},
		"without managed fields":    {kinds.Stores(), strings.Replace(storeJSON, `"managedFields"`, `"other"`, 1)},
		"of a role in some namespace": {kinds.Roles(), `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r","namespace":"n",
"uid":"u","resourceVersion":"1"},"rules":[{"verbs":["get"]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			published := decode(t, c.kind, c.raw).Change
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON([]byte(c.raw)); err != nil {
				t.Fatal(err)
			}
			read, err := kube.Origin{Cluster: "local", Epoch: "e"}.Change(c.kind, u)
			if err != nil {
				t.Fatal(err)
			}
			if one, other := plain(t, published.Object), plain(t, read.Object); !reflect.DeepEqual(one, other) {
				t.Errorf("the watcher publishes %s, services read %s", published.Object, read.Object)
			}
			published.Object, read.Object, published.ObservedAt = nil, nil, time.Time{}
			if !reflect.DeepEqual(published, read) {
				t.Errorf("the watcher publishes %+v, services read %+v", published, read)
			}
		})
	}
}

// plain is JSON as values, numbers as they are written.
func plain(t *testing.T, data []byte) any {
	t.Helper()
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
