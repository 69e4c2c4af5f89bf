package workload

import (
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DefinitionResource returns the resource of kind CustomResourceDefinition.
func DefinitionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// StoreLabel is the label with the name of the Store whose model includes the kind.
const StoreLabel = "core.platform-mesh.io/store-name"

// DefinitionGroup is the API group of all custom resources of the workload.
const DefinitionGroup = "chaos.example"

// definitionKind draws definitions with a label, with another label, and without one.
func definitionKind() ObjectKind {
	return ObjectKind{
		Resource: DefinitionResource(), Weight: 1, Keep: true,
		Once: []*unstructured.Unstructured{newDefinition("gear"), newDefinition("gadget")},
		Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			o := newDefinition(drawOne(r, "gear", "gadget"))
			if r.IntN(3) == 0 {
				return o, "no label"
			}
			store := drawNumbered(r, "store-", storeNames)
			o.SetLabels(map[string]string{StoreLabel: store})
			return o, "in " + store
		},
	}
}

func newDefinition(singular string) *unstructured.Unstructured {
	plural := singular + "s"
	o := newObject(DefinitionResource(), "CustomResourceDefinition", "", plural+"."+DefinitionGroup)
	o.Object["spec"] = map[string]any{
		"group": DefinitionGroup, "scope": "Cluster",
		"names": map[string]any{"plural": plural, "singular": singular, "kind": singular, "listKind": singular + "list"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
		}},
	}
	return o
}
