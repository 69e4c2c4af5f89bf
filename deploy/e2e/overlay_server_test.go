//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// The API server itself says whether it would take an overlay: unknown fields are refused, too.
func TestTheAPIServerTakesEveryOverlay(t *testing.T) {
	m := up(t, t.TempDir())
	cfg := m.config(t)
	cfg.QPS = -1 // There are hundreds.
	asked, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(asked)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, dir := range append(overlays(t), overlayWith(t, "ingress")) {
		for _, object := range built(t, dir) {
			kind := object.GroupVersionKind()
			mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				t.Errorf("%s: %v", dir, err)
				continue
			}
			if kind.Kind == "ValidatingWebhookConfiguration" {
				object.SetName(object.GetName() + "-other") // What runs here is asked at a URL.
			}
			data, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			client, force := objects.Resource(mapping.Resource), true
			options := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "test", FieldValidation: metav1.FieldValidationStrict, Force: &force}
			if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				_, err = client.Namespace(object.GetNamespace()).Patch(t.Context(), object.GetName(), types.ApplyPatchType, data, options)
			} else {
				_, err = client.Patch(t.Context(), object.GetName(), types.ApplyPatchType, data, options)
			}
			if err != nil {
				t.Errorf("%s: %s %s: %v", dir, kind.Kind, object.GetName(), err)
			}
		}
	}
	m.stop(t, os.Interrupt)
}
