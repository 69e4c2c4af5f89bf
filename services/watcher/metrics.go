package watcher

import "github.com/prometheus/client_golang/prometheus"

// metrics of a replica, leader or not.
type metrics struct {
	leader prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) metrics {
	m := metrics{leader: prometheus.NewGauge(prometheus.GaugeOpts{Name: "entail_watcher_leader", Help: "1 while this replica leads."})}
	registerer.MustRegister(m.leader)
	return m
}
