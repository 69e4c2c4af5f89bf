package workload

import (
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PolicyDocuments returns the resource of kind PolicyDocument.
func PolicyDocuments() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "iapl.infratographer.com", Version: "v1alpha1", Resource: "policydocuments"}
}

// policyDocuments draws documents that declare one type, with the name of the document. They depend on no other
// document.
func policyDocuments() Kind {
	return Kind{Resource: PolicyDocuments(), Weight: 2, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
		name := drawOne(r, "bridge", "tunnel")
		o := object(PolicyDocuments(), "PolicyDocument", "default", name)
		store := numbered(r, "store-", storeNames)
		action := name + drawOne(r, "_get", "_list")
		o.Object["spec"] = map[string]any{
			"storeRef":      named(store),
			"resourceTypes": []any{with(named(name), "idPrefix", name+"x")},
			"actions":       []any{named(action)},
			"actionBindings": []any{map[string]any{
				"actionName": action, "typeName": name, "conditions": []any{map[string]any{"roleBinding": map[string]any{}}},
			}},
		}
		return o, "in " + store + ", " + action
	}}
}
