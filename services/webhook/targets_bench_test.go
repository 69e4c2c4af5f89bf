package webhook

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
)

// BenchmarkTargets measures objects of a registered kind in the index: added one by one, and all at once when their
// kind is observed.
func BenchmarkTargets(b *testing.B) {
	const targets = 50_000
	kind := event.GroupResource{Group: "a", Resource: "trees", Target: true}
	for b.Loop() {
		s := newIndexState(informer.Config{Cluster: "local", Log: slog.New(slog.DiscardHandler)}, false)
		s.startNewIndex()
		s.fillAndPublishIndex()
		before, begun := inUse(), time.Now()
		for i := range targets {
			name := fmt.Sprintf("tree-%d", i)
			c := event.Change{
				Key: event.Key{Cluster: "local", GroupResource: kind, Namespace: "default", Name: name}, UID: name, ResourceVersion: "1", Epoch: "e",
				Object: fmt.Appendf(nil, `{"apiVersion":"a/v1","kind":"Tree","metadata":{"name":%q,"namespace":"default","uid":"00000000-0000-0000-0000-%012d"}}`, name, i),
			}
			if err := s.view.Apply(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		}
		telling := time.Since(begun)
		begun = time.Now()
		s.applyObservation(kind, informer.TargetKindStatus{Kind: "Tree", Namespaced: true, Observed: true})
		observing := time.Since(begun)
		b.ReportMetric(float64(telling.Nanoseconds())/targets, "ns-told/target")
		b.ReportMetric(float64(observing.Nanoseconds())/targets, "ns-observed/target")
		b.ReportMetric(float64(int64(inUse())-int64(before))/targets, "B/target")
		runtime.KeepAlive(s)
	}
}

// inUse returns the bytes of the heap in use.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
