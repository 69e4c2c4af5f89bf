package watcher

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/entail-dev/entail/services/internal/backoff"
)

const (
	// countInterval is the time between two counts of dead letters, countTimeout bounds one count.
	countInterval = 15 * time.Second
	countTimeout  = 5 * time.Second
)

// metrics are the metrics of every replica, leader or not.
type metrics struct {
	leader, letters prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) metrics {
	made := promauto.With(registerer)
	return metrics{
		leader:  made.NewGauge(prometheus.GaugeOpts{Name: "entail_watcher_leader", Help: "1 while this replica is the leader, 0 otherwise."}),
		letters: made.NewGauge(prometheus.GaugeOpts{Name: "entail_dead_letters", Help: "Dead letters: messages that services gave up on."}),
	}
}

// pollDeadLetterCount counts dead letters until ctx ends. While NATS does not answer, the last count stays.
func (m metrics) pollDeadLetterCount(ctx context.Context, read func(context.Context) (uint64, error)) error {
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
