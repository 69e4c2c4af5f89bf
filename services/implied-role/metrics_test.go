package impliedrole

import (
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func TestMetricsCountObjectsAndWrites(t *testing.T) {
	v := informer.New(informer.Config{Log: slog.New(slog.DiscardHandler)})
	s := state.New(v, "local", infer.DefaultPolicy())
	for name, synced := range map[string]metav1.ConditionStatus{"a": metav1.ConditionTrue, "b": metav1.ConditionFalse, "c": metav1.ConditionTrue} {
		rule := rolev1alpha1.ImpliedRoles{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		rule.Status.Conditions = []metav1.Condition{{Type: rolev1alpha1.Synced, Status: synced}}
		object, err := json.Marshal(rule)
		if err != nil {
			t.Fatal(err)
		}
		key := event.Key{Cluster: "local", GroupResource: kinds.ImpliedRoles().GroupResource, Namespace: "team", Name: name}
		if err := v.Apply(t.Context(), event.Change{Key: key, UID: name, ResourceVersion: "1", Object: object}); err != nil {
			t.Fatal(err)
		}
	}
	registry := prometheus.NewRegistry()
	m := newMetrics(registry, s)
	m.countWrite(infer.Create, nil)
	m.countWrite(infer.Create, nil)
	m.countWrite(infer.Delete, errors.New("refused"))
	got := map[string]float64{}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			name := f.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	if want := map[string]float64{
		"entail_implied_bindings": 0, "entail_implied_cycles": 0,
		"entail_implied_rules true": 2, "entail_implied_rules false": 1,
		"entail_implied_writes_total ok create": 2, "entail_implied_writes_total failed delete": 1,
	}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
