//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// gatewayAPI is the module with the schemas of routes.
const gatewayAPI = "sigs.k8s.io/gateway-api@v1.5.1"

// serveRoutes installs the published kind HTTPRoute in the API server.
func serveRoutes(t *testing.T, objects dynamic.Interface) {
	t.Helper()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", gatewayAPI)
	download.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := download.Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil {
		t.Fatalf("downloading %s: %v: %s", gatewayAPI, err, out)
	}
	data, err := os.ReadFile(filepath.Join(module.Dir, "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"))
	definition := &unstructured.Unstructured{}
	if err == nil {
		err = yaml.Unmarshal(data, &definition.Object)
	}
	if err != nil {
		t.Fatal(err)
	}
	definitions := objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := definitions.Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// judge checks with an API server whether it would accept objects.
type judge struct {
	objects dynamic.Interface
	mapper  meta.RESTMapper
}

func newJudge(t *testing.T, m *machine) judge {
	t.Helper()
	cfg := m.config(t)
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	serveRoutes(t, objects)
	asked, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	j := judge{objects: objects}
	eventually(t, soon, "routes are served and discovered", func(context.Context) error {
		groups, err := restmapper.GetAPIGroupResources(asked)
		if err != nil {
			return err
		}
		j.mapper = restmapper.NewDiscoveryRESTMapper(groups)
		_, err = j.mapper.RESTMapping(schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}, "v1")
		return err
	})
	return j
}

// takes returns an error if the API server would reject an object. Unknown fields are an error, too.
func (j judge) takes(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := j.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	client, force := dynamic.ResourceInterface(j.objects.Resource(mapping.Resource)), true
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = j.objects.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	_, err = client.Patch(ctx, object.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: "test", FieldValidation: metav1.FieldValidationStrict, Force: &force,
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind.Kind, object.GetName(), err)
	}
	return nil
}

// overlaysAreAccepted requires that the API server would accept every object of every overlay.
func overlaysAreAccepted(t *testing.T, m *machine) {
	t.Helper()
	j, routes := newJudge(t, m), overlayWith(t, "httproute")
	for _, dir := range append(overlays(t), overlayWith(t, "ingress"), routes) {
		for _, object := range built(t, dir) {
			if object.GetKind() == "ValidatingWebhookConfiguration" {
				object.SetName(object.GetName() + "-other") // The installed one has a URL instead of a Service.
			}
			if err := j.takes(t.Context(), object); err != nil {
				t.Errorf("%s: %v", dir, err)
			}
		}
	}
	all := built(t, routes)
	route := all[slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return o.GetKind() == "HTTPRoute" })]
	for field, wrong := range map[string]any{"parentRefs": []any{map[string]any{"gateway": "entail"}}, "rules": []any{map[string]any{
		"matches": []any{map[string]any{"path": map[string]any{"type": "Prefix", "value": "/"}}},
	}}} {
		broken := route.DeepCopy()
		if err := unstructured.SetNestedField(broken.Object, wrong, "spec", field); err != nil {
			t.Fatal(err)
		}
		if err := j.takes(t.Context(), broken); err == nil || meta.IsNoMatchError(err) {
			t.Errorf("a route with the %s %v: %v; want it to be refused", field, wrong, err)
		}
	}
}
