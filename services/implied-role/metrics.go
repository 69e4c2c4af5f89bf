package impliedrole

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
)

// metrics counts the writes of generated bindings.
type metrics struct {
	writes *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer, s *state.State) *metrics {
	m := &metrics{writes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "entail_implied_writes_total", Help: "Writes of generated RoleBindings, by verb and outcome.",
	}, []string{"verb", "outcome"})}
	registerer.MustRegister(m.writes, newCollector(s))
	return m
}

func (m *metrics) countWrite(v infer.Verb, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	m.writes.WithLabelValues(v.String(), outcome).Inc()
}

// collector counts objects in the informer when Prometheus scrapes.
type collector struct {
	state                    *state.State
	rules, generated, cycles *prometheus.Desc
}

func newCollector(s *state.State) collector {
	return collector{
		state:     s,
		rules:     prometheus.NewDesc("entail_implied_rules", "ImpliedRoles, by whether all their RoleBindings exist.", []string{"synced"}, nil),
		generated: prometheus.NewDesc("entail_implied_bindings", "RoleBindings that implied-role generated.", nil, nil),
		cycles:    prometheus.NewDesc("entail_implied_cycles", "Cycles: sets of roles that all imply each other.", nil, nil),
	}
}

// Describe implements [prometheus.Collector].
func (c collector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- c.rules
	descriptions <- c.generated
	descriptions <- c.cycles
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(values chan<- prometheus.Metric) {
	rules := map[string]int{"true": 0, "false": 0}
	for _, r := range c.state.Rules.All() {
		synced := meta.IsStatusConditionTrue(r.Value.Status.Conditions, rolev1alpha1.Synced)
		rules[strconv.FormatBool(synced)]++
	}
	for synced, n := range rules {
		values <- prometheus.MustNewConstMetric(c.rules, prometheus.GaugeValue, float64(n), synced)
	}
	values <- prometheus.MustNewConstMetric(c.generated, prometheus.GaugeValue, float64(c.state.CountGenerated()))
	values <- prometheus.MustNewConstMetric(c.cycles, prometheus.GaugeValue, float64(c.state.CountCycles()))
}
