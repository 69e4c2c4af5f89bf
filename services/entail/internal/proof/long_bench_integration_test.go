//go:build integration

package proof

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// longStore is the number of tuples of a large Store.
const longStore = 5000

// One of 5,000 tuples of a Store changes on an idle system. The times are from the answer to the user's request to the
// tuple in OpenFGA, and to Ready in the status of the Store.
func BenchmarkChangeInStoreOf5000Tuples(b *testing.B) {
	s := startInProcessServices(b, topology.Watcher, topology.StoreSync, topology.TupleSync)
	id := s.stores(b, 1)["bench-000"]
	tuples := make([]corev1alpha1.Tuple, longStore)
	for i := range tuples {
		tuples[i] = tuple(fmt.Sprintf("a-document-with-a-name-as-they-are-%05d", i))
	}
	apply := func() {
		s.kube.Apply(b, kinds.Stores(), "bench-000", corev1alpha1.StoreSpec{CoreModule: core, Tuples: tuples})
	}
	apply()
	testenv.Eventually(b, time.Minute, s.idle(b))
	became := s.watchReady(b)
	generation := <-became
	var visible, settled []time.Duration
	for round := 0; b.Loop(); round++ {
		object := fmt.Sprintf("round-%d", round)
		tuples[round%longStore] = tuple(object)
		apply()
		generation++
		begun := time.Now()
		visible = append(visible, durationUntil(b, func() (bool, error) {
			_, found, err := s.openFGA.ReadTuple(b.Context(), id, key(object))
			return found, err
		}))
		for <-became < generation { // An earlier generation.
		}
		settled = append(settled, time.Since(begun))
	}
	report(b, visible)
	slices.Sort(settled)
	b.ReportMetric(ms(settled[len(settled)/2]), "ready-p50-ms")
	b.ReportMetric(ms(settled[len(settled)*99/100]), "ready-p99-ms")
}

// watchReady returns a channel with every generation of a Store that becomes Ready, from the present one on. It decodes
// only the fields that it needs.
func (s *inProcessServices) watchReady(b *testing.B) <-chan int64 {
	b.Helper()
	path := "/apis/" + corev1alpha1.GroupVersion.String() + "/" + corev1alpha1.Stores
	stream, err := kubernetes.NewForConfigOrDie(s.kube.AdminConfig()).RESTClient().Get().AbsPath(path).Param("watch", "true").Stream(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	became := make(chan int64, 1024)
	done := make(chan struct{})
	b.Cleanup(func() { _ = stream.Close(); <-done })
	go func() {
		defer close(done)
		for events := json.NewDecoder(stream); ; {
			var e struct {
				Object struct {
					metav1.ObjectMeta `json:"metadata"`

					Status struct {
						Conditions []metav1.Condition `json:"conditions"`
					} `json:"status"`
				} `json:"object"`
			}
			if events.Decode(&e) != nil {
				return // The benchmark is over.
			}
			if ready(e.Object.Status.Conditions, e.Object.Generation) {
				became <- e.Object.Generation
			}
		}
	}()
	return became
}
