package opensearchsync

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// maxDriftEvents bounds the Kubernetes Events about drift in one run. The metric and the log count all of it.
const maxDriftEvents = 16

// eventRecorder records Kubernetes Events.
type eventRecorder interface {
	RecordEvents(ctx context.Context, about event.Change, notes ...condition.EventContent)
}

// driftReporter reports what other software changed in OpenSearch.
type driftReporter struct {
	metrics *writeMetrics
	notes   eventRecorder
	log     *slog.Logger
}

// reportDrift records the differences that a run repaired, in the metric, the log and Events of the objects.
func (d *driftReporter) reportDrift(ctx context.Context, key Key, w syncInput, actions []plan.Action, done applyResult) {
	objects, repaired := map[string]declaredObject{}, 0
	for _, o := range w.objects {
		objects[string(o.value.GetUID())] = o
	}
	for _, a := range actions {
		if len(a.Drift) == 0 || done.undone[a.Name] {
			continue
		}
		repaired++
		for _, uid := range a.For {
			if o, known := objects[uid]; known && repaired <= maxDriftEvents {
				d.notes.RecordEvents(ctx, o.Change, condition.EventContent{Warning: true, Reason: "DriftRepaired", Message: fmt.Sprintf(
					"other software changed %s of %s %.256q in OpenSearch; it is repaired", strings.Join(a.Drift, ", "), key.Kind, a.Name)})
				break
			}
		}
	}
	if repaired == 0 {
		return
	}
	d.metrics.drift.WithLabelValues(string(key.Kind)).Add(float64(repaired))
	d.log.WarnContext(ctx, "OpenSearch was changed by other software and is repaired",
		slog.String("cluster", key.Cluster.String()), slog.String("kind", string(key.Kind)), slog.Int("things", repaired))
}
