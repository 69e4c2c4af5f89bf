package mirror

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// What objects of a registered kind cost the mirror, of which one in a hundred belongs to a project and nothing is bound on any.
func BenchmarkTargets(b *testing.B) {
	const targets = 50_000
	for b.Loop() {
		bed := newBed(b)
		bed.State.observed.types[docType] = true
		bed.put(kinds.Organizations(), "acme", &resourcemanagerv1alpha1.Organization{})
		bed.project("web", "acme")
		bed.work()
		before, begun := inUse(), time.Now()
		for i := range targets {
			project := ""
			if i%100 == 0 {
				project = "web"
			}
			bed.doc(fmt.Sprintf("doc-%d", i), project)
		}
		telling := time.Since(begun)
		begun = time.Now()
		passes := bed.drain()
		passing := time.Since(begun)
		clear(bed.api)
		clear(bed.routes)
		b.ReportMetric(float64(telling.Nanoseconds())/targets, "ns-view/target")
		b.ReportMetric(float64(passing.Nanoseconds())/targets, "ns-passes/target")
		b.ReportMetric(float64(passes)/targets, "passes/target")
		b.ReportMetric(float64(int64(inUse())-int64(before))/targets, "B/target")
		runtime.KeepAlive(bed)
	}
}
