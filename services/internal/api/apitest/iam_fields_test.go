package apitest_test

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The tests on an API server find a field that the schema prunes only if a manifest sets the field.
func TestIAMManifestsSetEveryFieldOfEverySpec(t *testing.T) {
	set := map[string]map[string]bool{}
	for _, m := range manifests(t) {
		if set[m.GetKind()] == nil {
			set[m.GetKind()] = map[string]bool{}
		}
		collectLeaves("spec", m.Object["spec"], set[m.GetKind()])
	}
	for _, pattern := range []string{"iam.miloapis.com_*.yaml", "resourcemanager.miloapis.com_*.yaml"} {
		files, err := filepath.Glob(filepath.Join("../../../../deploy/crd", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("there are no definitions %s (%v)", pattern, err)
		}
		for _, file := range files {
			kind, all := readSchema(t, file)
			for _, path := range slices.Sorted(maps.Keys(all)) {
				if !set[kind][path] {
					t.Errorf("no %s sets %s", kind, path)
				}
			}
		}
	}
}

// readSchema returns the kind and the fields of its spec.
func readSchema(t *testing.T, file string) (kind string, all map[string]bool) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var definition map[string]any
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	kind, _, _ = unstructured.NestedString(definition, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	version, _ := versions[0].(map[string]any)
	spec, _, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec")
	if err != nil {
		t.Fatal(err)
	}
	all = map[string]bool{}
	collectFields("spec", spec, all)
	return kind, all
}

// collectFields collects the paths of all fields with values in a schema.
func collectFields(path string, schema map[string]any, into map[string]bool) {
	properties, _ := schema["properties"].(map[string]any)
	items, list := schema["items"].(map[string]any)
	for name, property := range properties {
		if of, ok := property.(map[string]any); ok {
			collectFields(path+"."+name, of, into)
		}
	}
	switch {
	case list:
		collectFields(path+"[]", items, into)
	case schema["type"] != nil && len(properties) == 0:
		into[path] = true
	}
}

// collectLeaves collects the paths of the values that an object sets.
func collectLeaves(path string, value any, into map[string]bool) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for name, of := range v {
			collectLeaves(path+"."+name, of, into)
		}
	case []any:
		for _, of := range v {
			collectLeaves(path+"[]", of, into)
		}
	default:
		into[path] = true
	}
}

// manifests reads the test manifests, which contain every kind of IAM.
func manifests(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	file, err := os.Open("testdata/iam.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(file, 1024)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
}

func manifestNamed(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	for _, m := range manifests(t) {
		if m.GetName() == name {
			return m
		}
	}
	t.Fatalf("no manifest is named %s", name)
	return nil
}
