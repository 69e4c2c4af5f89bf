package store

import (
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

func declared(core string) plan.Input {
	return plan.Input{Key: storeKey("demo"), Store: &corev1alpha1.Store{Spec: corev1alpha1.StoreSpec{CoreModule: core}}}
}

func TestMergeCacheMergesOnce(t *testing.T) {
	c := NewMergeCache(model.Limits{})
	first, err := c.Merge(declared("module core\n\ntype user\n"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Merge(declared("module core\n\ntype user\n"))
	if err != nil || again.Model != first.Model {
		t.Errorf("merged again, error %v", err)
	}
	other, err := c.Merge(declared("module core\n\ntype person\n"))
	if err != nil || other.Model == first.Model || other.Model.GetTypeDefinitions()[0].GetType() != "person" {
		t.Errorf("another core gives %v, error %v", other.Model, err)
	}
}

func TestMergeCacheKeepsError(t *testing.T) {
	c := NewMergeCache(model.Limits{})
	for range 2 {
		if _, err := c.Merge(declared("")); err == nil {
			t.Error("an empty core merges")
		}
	}
}
