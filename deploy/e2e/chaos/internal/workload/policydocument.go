package workload

import (
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PolicyDocumentResource returns the resource of kind PolicyDocument.
func PolicyDocumentResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "iapl.infratographer.com", Version: "v1alpha1", Resource: "policydocuments"}
}

// policyDocumentKind draws documents that declare one type, with the name of the document. They depend on no other
// document.
func policyDocumentKind() ObjectKind {
	return ObjectKind{Resource: PolicyDocumentResource(), Weight: 2, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
		name := drawOne(r, "bridge", "tunnel")
		o := newObject(PolicyDocumentResource(), "PolicyDocument", "default", name)
		store := drawNumbered(r, "store-", storeNames)
		action := name + drawOne(r, "_get", "_list")
		o.Object["spec"] = map[string]any{
			"storeRef":      nameReference(store),
			"resourceTypes": []any{withField(nameReference(name), "idPrefix", name+"x")},
			"actions":       []any{nameReference(action)},
			"actionBindings": []any{map[string]any{
				"actionName": action, "typeName": name, "conditions": []any{map[string]any{"roleBinding": map[string]any{}}},
			}},
		}
		return o, "in " + store + ", " + action
	}}
}
