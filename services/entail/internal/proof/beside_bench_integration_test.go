//go:build integration

package proof

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// comparedSystem is one of the three systems that are compared in turns on the same servers: the services, a
// [simpleOperator], and a loop that records its writes. The records are the least that prevents leaks in a crash. The
// benchmark reads OpenFGA to find out when a change is visible. Time starts before the user's first request.
type comparedSystem struct {
	name           string
	kind           kinds.Kind
	visible, ready []time.Duration
}

// startComparedSystems starts the services and both loops. The loops put perCall tuples into one call.
func startComparedSystems(b *testing.B, perCall int) (s *inProcessServices, sides []*comparedSystem) {
	b.Helper()
	s = startInProcessServices(b, topology.Watcher, topology.StoreSync, topology.TupleSync)
	sides = []*comparedSystem{{name: "services", kind: kinds.Stores()}}
	for _, l := range []*simpleOperator{{kind: kindOfSimpleOperator("loop.example.org")}, {kind: kindOfSimpleOperator("recorded.example.org"), records: true}} {
		l.perCall = perCall
		s.startLoop(b, l)
		sides = append(sides, &comparedSystem{name: "loop", kind: l.kind})
	}
	return s, sides
}

// change is a change to some Stores: their new tuples, and one tuple that OpenFGA must hold in the end, or must not if
// gone is true.
type change struct {
	stores []string
	tuples []corev1alpha1.Tuple
	last   corev1alpha1.Tuple
	gone   bool
}

// measure applies a change, and records the times until it is visible and until it is Ready.
func (s *inProcessServices) measure(b *testing.B, on *comparedSystem, c change) {
	b.Helper()
	begun := time.Now()
	for _, name := range c.stores {
		s.kube.Apply(b, on.kind, on.name+"-"+name, corev1alpha1.StoreSpec{CoreModule: core, Tuples: c.tuples, Discovery: corev1alpha1.DiscoveryNone})
	}
	for _, name := range c.stores {
		durationUntil(b, func() (bool, error) {
			found, err := s.openFGA.FindStores(b.Context(), on.name+"-"+name)
			if err != nil || len(found) == 0 {
				return false, err
			}
			_, held, err := s.openFGA.ReadTuple(b.Context(), found[0].ID, keys([]corev1alpha1.Tuple{c.last})[0])
			return held != c.gone, err
		})
	}
	on.visible = append(on.visible, time.Since(begun))
	for _, name := range c.stores {
		durationUntil(b, func() (bool, error) {
			u, err := s.objects.Resource(on.kind.GroupVersionResource()).Get(b.Context(), on.name+"-"+name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			var o corev1alpha1.Store
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o)
			return ready(o.Status.Conditions, o.Generation), err
		})
	}
	on.ready = append(on.ready, time.Since(begun))
}

// clear deletes Stores of a side, and waits until none of its kind exists.
func (s *inProcessServices) clear(b *testing.B, on *comparedSystem, names []string) {
	b.Helper()
	objects := s.objects.Resource(on.kind.GroupVersionResource())
	for _, name := range names {
		if err := objects.Delete(b.Context(), on.name+"-"+name, metav1.DeleteOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	testenv.Eventually(b, 3*time.Minute, func() error {
		rest, err := objects.List(b.Context(), metav1.ListOptions{})
		if err == nil && len(rest.Items) > 0 {
			err = fmt.Errorf("%d are left", len(rest.Items))
		}
		return err
	})
}

// compare reports the medians of the services, and the factor by which each loop is slower.
func compare(b *testing.B, what string, sides []*comparedSystem) {
	b.Helper()
	middle := func(took []time.Duration) float64 {
		slices.Sort(took)
		return ms(took[len(took)/2])
	}
	services := sides[0]
	visible, ready := middle(services.visible), middle(services.ready)
	b.ReportMetric(visible, what+"visible-ms")
	b.ReportMetric(ready, what+"ready-ms")
	for i, of := range []string{"loop", "recorded"} {
		loop := sides[1+i]
		b.ReportMetric(middle(loop.visible)/visible, what+"visible-of-"+of)
		b.ReportMetric(middle(loop.ready)/ready, what+"ready-of-"+of)
	}
}

// turns is the number of turns of each side at each position.
const turns = 3

// newStores creates Stores at once, each with its tuples, and deletes them again.
func newStores(b *testing.B, perCall, stores, each int) {
	b.Helper()
	s, sides := startComparedSystems(b, perCall)
	names := make([]string, stores)
	for i := range names {
		names[i] = fmt.Sprintf("%03d", i)
	}
	tuples := make([]corev1alpha1.Tuple, each)
	for i := range tuples {
		tuples[i] = tuple(fmt.Sprintf("%05d", i))
	}
	for b.Loop() {
		for round := range len(sides) * turns {
			on := sides[(round+round/len(sides))%len(sides)]
			s.measure(b, on, change{stores: names, tuples: tuples, last: tuples[each-1]})
			s.clear(b, on, names)
		}
	}
	compare(b, "", sides)
}

// 10,000 tuples are declared in 100 new Stores.
func BenchmarkChangeDuringNewStores(b *testing.B) { newStores(b, fga.DefaultMaxTuples, 100, 100) }

// 1,000 tuples are declared in one new Store. The loops write one tuple in each call, one after the other.
func BenchmarkChangeDuringLargeNewStore(b *testing.B) { newStores(b, 1, 1, 1000) }

// One of three tuples of a Store is added and removed.
func BenchmarkChangeDuringOneTupleEdits(b *testing.B) {
	s, sides := startComparedSystems(b, fga.DefaultMaxTuples)
	two, one := []corev1alpha1.Tuple{tuple("1"), tuple("2")}, []string{"one"}
	added, removed := sides, []*comparedSystem{}
	for _, on := range added {
		s.measure(b, on, change{stores: one, tuples: two, last: two[1]})
		on.visible, on.ready = nil, nil
		removed = append(removed, &comparedSystem{name: on.name, kind: on.kind})
	}
	for b.Loop() {
		for round := range 10 * len(sides) * turns {
			i := (round + round/len(sides)) % len(sides)
			third := tuple(fmt.Sprintf("round-%d", round))
			s.measure(b, added[i], change{stores: one, tuples: append(slices.Clip(two), third), last: third})
			s.measure(b, removed[i], change{stores: one, tuples: two, last: third, gone: true})
		}
	}
	compare(b, "added-", added)
	compare(b, "removed-", removed)
}
