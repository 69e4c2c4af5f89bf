package store

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/module"
)

// outdatedModuleCollector exports the objects with an earlier text live. Elements that an edit removed may still be in the model.
type outdatedModuleCollector struct {
	state *module.StoreListers
	since *prometheus.Desc
}

// NewMetrics returns the metrics of Stores.
func NewMetrics(state *State) prometheus.Collector {
	return &outdatedModuleCollector{state.Shared, prometheus.NewDesc("entail_last_good_live_since_seconds",
		"Unix time at which the present text of an object became invalid. Its last valid version stays in force since.", []string{"resource", "name"}, nil)}
}

// Describe implements prometheus.Collector.
func (o *outdatedModuleCollector) Describe(described chan<- *prometheus.Desc) { described <- o.since }

// Collect implements prometheus.Collector.
func (o *outdatedModuleCollector) Collect(found chan<- prometheus.Metric) {
	for _, m := range o.state.Models.All() {
		o.collectMetric(found, m.Key, m.Value.Kept())
	}
	for _, s := range o.state.Stores.All() {
		o.collectMetric(found, s.Key, s.Value.Kept())
	}
}

func (o *outdatedModuleCollector) collectMetric(found chan<- prometheus.Metric, of event.Key, c *metav1.Condition) {
	if c != nil {
		found <- prometheus.MustNewConstMetric(o.since, prometheus.GaugeValue, float64(c.LastTransitionTime.Unix()), of.Resource, of.Name)
	}
}
