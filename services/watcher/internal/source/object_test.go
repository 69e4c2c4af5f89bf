package source

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

const storeJSON = `{"apiVersion":"core.platform-mesh.io/v1alpha1","kind":"Store","metadata":{"name":"demo","uid":"u1","resourceVersion":"7","generation":2,
"managedFields":[{"manager":"kubectl"}],"labels":{"team":"a"}},"spec":{"coreModule":"module core"},"status":{"storeId":"01"}}`

func secrets() kinds.Kind {
	return kinds.Kind{GroupResource: event.GroupResource{Resource: "secrets"}, Version: "v1", Kind: "Secret", MetadataOnly: true}
}

func withoutStatus() kinds.Kind {
	kind := kinds.Stores()
	kind.Status = false
	return kind
}

func decode(t *testing.T, kind kinds.Kind, raw string) Object {
	t.Helper()
	o, err := (&Source{cluster: "local", epoch: "e"}).toObject(kind, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestToObjectRemovesManagedFields(t *testing.T) {
	o := decode(t, kinds.Stores(), storeJSON)
	want := event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "demo"}
	if o.Key != want || o.UID != "u1" || o.ResourceVersion != "7" || o.Generation != 2 || o.Epoch != "e" ||
		o.Version != "v1alpha1" || o.Kind != "Store" || o.Deleted || o.ObservedAt.IsZero() {
		t.Errorf("change is %+v", o.Change)
	}
	var top map[string]map[string]any
	var flat map[string]any
	if err := json.Unmarshal(o.Change.Object, &flat); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(o.Change.Object, &top)
	if _, there := top["metadata"]["managedFields"]; there || top["metadata"]["labels"] == nil || top["status"]["storeId"] != "01" {
		t.Errorf("object is %s", o.Change.Object)
	}
}

func TestListItemGetsKind(t *testing.T) {
	roles := kinds.Kind{GroupResource: event.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}, Version: "v1", Kind: "Role"}
	listed := decode(t, roles, `{"metadata":{"name":"r","namespace":"n","uid":"u","resourceVersion":"1"},"rules":null}`)
	watched := decode(t, roles, `{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"r","namespace":"n","uid":"u","resourceVersion":"1"},"rules":null}`)
	if string(listed.Change.Object) != string(watched.Change.Object) || listed.ContentHash != watched.ContentHash {
		t.Errorf("listed %s, watched %s", listed.Change.Object, watched.Change.Object)
	}
	if listed.Key.Namespace != "n" || !strings.Contains(string(listed.Change.Object), `"kind":"Role"`) {
		t.Errorf("listed %s in %q", listed.Change.Object, listed.Key.Namespace)
	}
}

func TestContentHashCoversConsumedFields(t *testing.T) {
	for name, tc := range map[string]struct {
		kind          kinds.Kind
		before, after string
		same          bool
	}{
		"resourceVersion":              {kinds.Stores(), `"7"`, `"8"`, true},
		"managed fields":               {kinds.Stores(), `kubectl`, `helm`, true},
		"order":                        {kinds.Stores(), `"name":"demo","uid":"u1"`, `"uid":"u1","name":"demo"`, true},
		"spec":                         {kinds.Stores(), `module core`, `module other`, false},
		"label":                        {kinds.Stores(), `"team":"a"`, `"team":"b"`, false},
		"uid":                          {kinds.Stores(), `"u1"`, `"u2"`, false},
		"deletion":                     {kinds.Stores(), `"labels"`, `"deletionTimestamp":"2026-01-01T00:00:00Z","labels"`, false},
		"status":                       {kinds.Stores(), `"storeId":"01"`, `"storeId":"02"`, false},
		"status that nobody reads":     {withoutStatus(), `"storeId":"01"`, `"storeId":"02"`, true},
		"content that does not travel": {secrets(), `"7"`, `"8"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(storeJSON, tc.before, tc.after, 1)
			if changed == storeJSON {
				t.Fatal("nothing was replaced")
			}
			if got := decode(t, tc.kind, storeJSON).ContentHash == decode(t, tc.kind, changed).ContentHash; got != tc.same {
				t.Errorf("same meaning is %v, want %v", got, tc.same)
			}
		})
	}
}

func TestToObjectOfSecretKeepsMetadataOnly(t *testing.T) {
	o := decode(t, secrets(), `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"n","uid":"u","resourceVersion":"1",
"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"password\":\"aHVudGVyMg==\"}}","note":"kept"},"managedFields":[{"manager":"aHVudGVyMg=="}]},
"data":{"password":"aHVudGVyMg=="},"stringData":{"password":"aHVudGVyMg=="},"type":"Opaque"}`)
	if object := string(o.Change.Object); strings.Contains(object, "aHVudGVyMg==") || strings.Contains(object, "password") || !strings.Contains(object, `"note":"kept"`) {
		t.Errorf("object is %s", object)
	}
}

func TestToObjectRefusesInvalidObject(t *testing.T) {
	for _, raw := range []string{``, `null`, `[]`, `{}`, `{"metadata":7}`, `{"metadata":{"name":7}}`} {
		if o, err := (&Source{}).toObject(kinds.Stores(), []byte(raw)); err == nil {
			t.Errorf("%s became %+v", raw, o)
		}
	}
	if _, err := (&Source{}).toObject(secrets(), []byte(`{"metadata":{"name":"s","uid":"u","resourceVersion":"1","annotations":7}}`)); err == nil {
		t.Error("a Secret whose annotations cannot be read was let through")
	}
}

func FuzzToObjectDoesNotLeakSecret(f *testing.F) {
	f.Add("aHVudGVyMg==", "note")
	f.Add("\x00\xff", "kubectl.kubernetes.io/last-applied-configuration")
	f.Fuzz(func(t *testing.T, value, annotation string) {
		const mark = "S3CRET"
		if strings.Contains(annotation, mark) {
			return
		}
		raw, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"name": "s", "uid": "u", "resourceVersion": "1", "annotations": map[string]string{
				annotation: "kept", "kubectl.kubernetes.io/last-applied-configuration": mark + value,
			}},
			"data": map[string]string{"k": mark + value}, mark + value: mark,
		})
		if err != nil {
			t.Fatal(err)
		}
		o, err := (&Source{}).toObject(secrets(), raw)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(o.Change.Object), mark) {
			t.Errorf("object is %s", o.Change.Object)
		}
	})
}
