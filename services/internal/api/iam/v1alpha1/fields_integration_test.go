//go:build integration

package v1alpha1_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// No field that people set is left out of the manifests that are applied: what the schema lost of one would be pruned unseen.
func TestManifestsSetEveryFieldOfEverySpec(t *testing.T) {
	set := map[string]map[string]bool{}
	for _, m := range manifests(t) {
		if set[m.GetKind()] == nil {
			set[m.GetKind()] = map[string]bool{}
		}
		leaves("spec", m.Object["spec"], set[m.GetKind()])
	}
	for _, pattern := range []string{"iam.miloapis.com_*.yaml", "resourcemanager.miloapis.com_*.yaml"} {
		files, err := filepath.Glob(filepath.Join("../../../../../deploy/crd", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("there are no definitions %s (%v)", pattern, err)
		}
		for _, file := range files {
			kind, all := schemaOf(t, file)
			for _, path := range slices.Sorted(maps.Keys(all)) {
				if !set[kind][path] {
					t.Errorf("no %s sets %s", kind, path)
				}
			}
		}
	}
}

// schemaOf are the fields of a kind's spec.
func schemaOf(t *testing.T, file string) (kind string, all map[string]bool) {
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
	fields("spec", spec, all)
	return kind, all
}

// fields are those of a schema that hold values, by their paths.
func fields(path string, schema map[string]any, into map[string]bool) {
	properties, _ := schema["properties"].(map[string]any)
	items, list := schema["items"].(map[string]any)
	for name, property := range properties {
		if of, ok := property.(map[string]any); ok {
			fields(path+"."+name, of, into)
		}
	}
	switch {
	case list:
		fields(path+"[]", items, into)
	case schema["type"] != nil && len(properties) == 0:
		into[path] = true
	}
}

// leaves are those that an object sets.
func leaves(path string, value any, into map[string]bool) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for name, of := range v {
			leaves(path+"."+name, of, into)
		}
	case []any:
		for _, of := range v {
			leaves(path+"[]", of, into)
		}
	default:
		into[path] = true
	}
}
