package derived

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// BenchmarkTargets measures the cost of objects of a registered kind. One in a hundred belongs to a project, and none
// has a binding.
func BenchmarkTargets(b *testing.B) {
	const targets = 50_000
	for b.Loop() {
		bed := newReconcilerEnv(b)
		bed.State.observed.types[docType] = kindScope{followed: true}
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

// What it costs that the objects of kinds, on which nothing is bound, are known and are not, one kind a second, beside bindings
// on others.
func BenchmarkObservations(b *testing.B) {
	const bindings, observations = 300, 16
	bed := newReconcilerEnv(b)
	bed.peopled()
	for i := range bindings {
		bed.bind(fmt.Sprintf("binding-%d", i), "viewer", bed.subject(kinds.IAMUsers(), "bob"))
	}
	bed.work()
	var told informer.TargetKindStatus
	bed.State.observed.of = func(event.GroupResource) informer.TargetKindStatus { return told }
	for b.Loop() {
		passes := 0
		for i := range observations {
			told = informer.TargetKindStatus{Kind: fmt.Sprintf("Kind%d", i), Observed: !told.Observed}
			bed.State.observed.updateObservation(event.GroupResource{Group: "b.example", Resource: fmt.Sprintf("kinds%d", i), Target: true})
			bed.follow()
			passes += len(bed.done)
		}
		b.ReportMetric(float64(passes)/observations, "passes/observation")
	}
}
