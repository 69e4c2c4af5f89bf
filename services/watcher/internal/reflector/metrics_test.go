package reflector

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/entail-dev/entail/services/internal/topology"
)

// An alert on an increase needs a value before the first event.
func TestRestoredStreamsAreCountedFromZero(t *testing.T) {
	r := &reflector{cfg: Config{Metrics: NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler)}}
	if n := testutil.CollectAndCount(r.cfg.Metrics.restored); n != len(topology.StreamNames()) {
		t.Errorf("%d streams have a count", n)
	}
	for _, step := range []struct {
		what       string
		difference topology.StreamDifference
		before     bool
		want       float64
	}{
		{"made at the first start", topology.StreamDifference{Stream: topology.Changes, Missing: true}, false, 0},
		{"changed before the first start", topology.StreamDifference{Stream: topology.Changes}, false, 1},
		{"deleted", topology.StreamDifference{Stream: topology.Changes, Missing: true}, true, 2},
		{"changed", topology.StreamDifference{Stream: topology.Changes}, true, 3},
	} {
		r.restored = step.before
		r.reportRepairedStream(t.Context(), step.difference)
		if got := testutil.ToFloat64(r.cfg.Metrics.restored.WithLabelValues(topology.Changes)); got != step.want {
			t.Errorf("%s: %v were restored, want %v", step.what, got, step.want)
		}
	}
}
