//go:build integration

package reflector

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

func TestUnusedStatusIsNotPublished(t *testing.T) {
	b, kube := newTestNATS(t), testenv.StartKube(t)
	from, err := source.New(kube.ServiceConfig(t, topology.Watcher), "local")
	if err != nil {
		t.Fatal(err)
	}
	stores := kinds.Stores()
	objects := kube.DynamicClient(t).Resource(schema.GroupVersionResource{Group: stores.Group, Version: stores.Version, Resource: stores.Resource})
	cfg := b.config(from)
	stores.Status = false
	cfg.Kinds = []kinds.Kind{stores}
	kube.Apply(t, stores, "a", map[string]any{"coreModule": "module core"})
	b.run(cfg)
	eventually(t, func() error { _, err := b.marker(); return err })
	before := b.quiet()
	for i := range 5 {
		patch := fmt.Appendf(nil, `{"status":{"storeId":"%d"}}`, i)
		if _, err := objects.Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	kube.Apply(t, stores, "b", map[string]any{"coreModule": "module core"})
	key := newFakeSource().key("b")
	eventually(t, func() error { _, err := b.p.LastChange(t.Context(), key); return err })
	if after := b.quiet(); after != before+1 {
		t.Errorf("%d messages for one change that somebody reads", after-before)
	}
}
