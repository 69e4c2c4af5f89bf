package storesync

import (
	"strconv"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

func declared(name, core string) plan.Input {
	return plan.Input{Key: storeKey(name), Store: &corev1alpha1.Store{Spec: corev1alpha1.StoreSpec{CoreModule: core}}}
}

func TestTheSameModulesAreMergedOnce(t *testing.T) {
	m := newMerges(model.Limits{})
	first, err := m.of(declared("demo", "module core\n\ntype user\n"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.of(declared("demo", "module core\n\ntype user\n"))
	if err != nil || again.Model != first.Model {
		t.Errorf("merged again, error %v", err)
	}
	other, err := m.of(declared("demo", "module core\n\ntype person\n"))
	if err != nil || other.Model == first.Model || other.Model.GetTypeDefinitions()[0].GetType() != "person" {
		t.Errorf("another core gives %v, error %v", other.Model, err)
	}
}

func TestAMergeThatFailedFailsAgain(t *testing.T) {
	m := newMerges(model.Limits{})
	for range 2 {
		if _, err := m.of(declared("demo", "")); err == nil {
			t.Error("an empty core merges")
		}
	}
}

func TestOnlySoManyMergesAreRemembered(t *testing.T) {
	m := newMerges(model.Limits{})
	for i := range 2 * maxRemembered {
		if _, err := m.of(declared(strconv.Itoa(i), "module core\n\ntype user\n")); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.memory.kept) != maxRemembered {
		t.Errorf("%d merges are remembered", len(m.memory.kept))
	}
}
