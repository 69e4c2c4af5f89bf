package workload

import (
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AuthorizationModelResource returns the resource of kind AuthorizationModel.
func AuthorizationModelResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "core.platform-mesh.io", Version: "v1alpha1", Resource: "authorizationmodels"}
}

// authorizationModelKind draws AuthorizationModels that declare a type of their own, so they never conflict. A few are
// invalid, and a few refer to another Store than usual.
func authorizationModelKind() ObjectKind {
	return ObjectKind{Resource: AuthorizationModelResource(), Weight: 8, Strippable: true, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
		n := r.IntN(partNames)
		o := newObject(AuthorizationModelResource(), "AuthorizationModel", "", fmt.Sprintf("part-%d", n))
		own := fmt.Sprintf("part_%d", n)
		store := fmt.Sprintf("store-%d", n%storeNames)
		if r.IntN(4) == 0 {
			store = drawNumbered(r, "store-", storeNames)
		}
		variant := r.IntN(len(viewers))
		text, what := "module "+own+"\n"+viewableTypeText(own, variant), fmt.Sprintf("variant %d", variant)
		if r.IntN(7) == 0 {
			text, what = "module "+own+"\ntype "+own+"\n  relations\n    define editor: [nothing]\n", "broken"
		}
		tuples := drawTuples(r, own)
		o.Object["spec"] = map[string]any{"storeRef": nameReference(store), "model": text, "tuples": tuples}
		return o, fmt.Sprintf("in %s, %s, %d tuples", store, what, len(tuples))
	}}
}
