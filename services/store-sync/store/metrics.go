package store

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// outdated tells of whom an earlier text than the object's is live: what an edit took out of it may be there still.
type outdated struct {
	state *module.State
	since *prometheus.Desc
}

// NewMetrics makes the metrics of Stores.
func NewMetrics(state *State) prometheus.Collector {
	return &outdated{state.Shared, prometheus.NewDesc("entail_last_good_live_since_seconds",
		"Unix time since which the last live text of an object stays in a model in the place of its own.", []string{"resource", "name"}, nil)}
}

// Describe implements prometheus.Collector.
func (o *outdated) Describe(described chan<- *prometheus.Desc) { described <- o.since }

// Collect implements prometheus.Collector.
func (o *outdated) Collect(found chan<- prometheus.Metric) {
	for _, m := range o.state.Models.All() {
		o.collect(found, m.Key, meta.FindStatusCondition(m.Value.Status.Conditions, corev1alpha1.Merged), corev1alpha1.LastGoodLive)
	}
	for _, s := range o.state.Stores.All() {
		if s.Value.Status.Live != nil {
			o.collect(found, s.Key, meta.FindStatusCondition(s.Value.Status.Conditions, corev1alpha1.ModelSynced), plan.ReasonInvalidCore)
		}
	}
}

func (o *outdated) collect(found chan<- prometheus.Metric, of event.Key, c *metav1.Condition, reason string) {
	if c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason {
		found <- prometheus.MustNewConstMetric(o.since, prometheus.GaugeValue, float64(c.LastTransitionTime.Unix()), of.Resource, of.Name)
	}
}
