package testenv

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// servedWithin bounds the wait until a kind is served, or until an older definition of the kind is deleted.
const servedWithin = time.Minute

// ServeLegacyOpenSearch makes the API server serve the OpenSearch kinds in their former API group, until the test
// ends.
func (k *KubeServer) ServeLegacyOpenSearch(t testing.TB) {
	t.Helper()
	root, err := devserver.CheckoutRoot()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy/crd-legacy/*.yaml"))
	if err != nil || len(files) != len(kinds.LegacyOpenSearchKinds())-1 {
		t.Fatalf("%d definitions: %v", len(files), err)
	}
	for _, file := range append(files, filepath.Join(root, "deploy/crd/opensearch.org_opensearchclusters.yaml")) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := devserver.DecodeManifest([]byte(strings.ReplaceAll(string(data), opensearchv1.GroupVersion.Group+"\n", opensearchv1.LegacyGroup+"\n")))
		if err != nil || len(objects) != 1 {
			t.Fatalf("%s: %d objects, %v", file, len(objects), err)
		}
		k.createCRD(t, objects[0])
	}
	k.awaitServed(t, kinds.LegacyOpenSearchKinds())
}

// ServeKinds makes the API server serve kinds as [CRDFields] defines them, until the test ends.
func (k *KubeServer) ServeKinds(t testing.TB, served ...kinds.Kind) {
	t.Helper()
	for _, kind := range served {
		definition := &unstructured.Unstructured{Object: CRDFields(kind, nil)}
		definition.SetGroupVersionKind(kinds.CustomResourceDefinitions().GroupVersionResource().GroupVersion().WithKind(kinds.CustomResourceDefinitions().Kind))
		definition.SetName(kind.Resource + "." + kind.Group)
		k.createCRD(t, definition)
	}
	k.awaitServed(t, served)
}

// createCRD creates a CustomResourceDefinition that is deleted at the end of the test.
func (k *KubeServer) createCRD(t testing.TB, definition *unstructured.Unstructured) {
	t.Helper()
	definitions := k.DynamicClient(t).Resource(kinds.CustomResourceDefinitions().GroupVersionResource())
	// The deletion of an earlier definition may not have finished.
	Eventually(t, servedWithin, func() error {
		_, err := definitions.Create(t.Context(), definition, metav1.CreateOptions{})
		return err
	})
	t.Cleanup(func() {
		_ = definitions.Delete(context.WithoutCancel(t.Context()), definition.GetName(), metav1.DeleteOptions{})
	})
}

// awaitServed waits until kinds that were just defined are served.
func (k *KubeServer) awaitServed(t testing.TB, served []kinds.Kind) {
	t.Helper()
	for _, kind := range served {
		Eventually(t, servedWithin, func() error {
			_, err := k.DynamicClient(t).Resource(kind.GroupVersionResource()).List(t.Context(), metav1.ListOptions{})
			return err
		})
	}
}
