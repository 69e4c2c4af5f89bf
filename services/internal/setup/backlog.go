package setup

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/topology"
)

// backlogInterval is the time between two reads of the backlog.
const backlogInterval = 10 * time.Second

// backlogExporter exports the backlog of a durable consumer as metrics. All replicas export the same values.
type backlogExporter struct {
	read                             func(ctx context.Context) (topology.ConsumerBacklog, error)
	log                              *slog.Logger
	pending, unsettled, redelivering prometheus.Gauge
}

func newBacklogExporter(read func(ctx context.Context) (topology.ConsumerBacklog, error), service string, registerer prometheus.Registerer,
	log *slog.Logger,
) *backlogExporter {
	gauge := func(name, help string) prometheus.Gauge {
		return promauto.With(registerer).NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"service": service}})
	}
	return &backlogExporter{
		read: read, log: log,
		pending:      gauge("entail_messages_pending", "Messages that NATS has not delivered to the service yet."),
		unsettled:    gauge("entail_messages_unsettled", "Messages that NATS delivered and the service has not acknowledged."),
		redelivering: gauge("entail_messages_redelivering", "Unacknowledged messages that were delivered more than once."),
	}
}

// runExportLoop exports the backlog every backlogInterval until ctx ends.
func (b *backlogExporter) runExportLoop(ctx context.Context) error {
	for {
		b.exportBacklog(ctx)
		if !backoff.Sleep(ctx, backlogInterval) {
			return nil
		}
	}
}

func (b *backlogExporter) exportBacklog(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, backlogInterval/2)
	defer cancel()
	now, err := b.read(ctx)
	if err != nil {
		b.log.DebugContext(ctx, "durable not read", slog.Any("error", err))
		return
	}
	b.pending.Set(float64(now.Pending))
	b.unsettled.Set(float64(now.Unsettled))
	b.redelivering.Set(float64(now.Redelivering))
}
