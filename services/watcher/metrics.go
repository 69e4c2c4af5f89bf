package watcher

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/entail-dev/entail/services/internal/backoff"
)

const (
	// countInterval is how often dead letters are counted, countTimeout how long that may take.
	countInterval = 15 * time.Second
	countTimeout  = 5 * time.Second
)

// metrics of a replica, leader or not.
type metrics struct {
	leader, letters prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) metrics {
	made := promauto.With(registerer)
	return metrics{
		leader:  made.NewGauge(prometheus.GaugeOpts{Name: "entail_watcher_leader", Help: "1 while this replica leads."}),
		letters: made.NewGauge(prometheus.GaugeOpts{Name: "entail_dead_letters", Help: "Messages that services have given up."}),
	}
}

// count counts dead letters until ctx ends. While the bus is away the last count stands.
func (m metrics) count(ctx context.Context, read func(context.Context) (uint64, error)) error {
	for {
		within, cancel := context.WithTimeout(ctx, countTimeout)
		if n, err := read(within); err == nil {
			m.letters.Set(float64(n))
		}
		cancel()
		if !backoff.Sleep(ctx, countInterval) {
			return nil
		}
	}
}
