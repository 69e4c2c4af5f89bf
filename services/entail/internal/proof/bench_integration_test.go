//go:build integration

package proof

import (
	"fmt"
	"slices"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/store-sync/model"
)

func tuple(object string) corev1alpha1.Tuple {
	return corev1alpha1.Tuple{Object: "doc:" + object, Relation: "viewer", User: "user:anne"}
}

func key(object string) *openfgav1.TupleKey {
	return &openfgav1.TupleKey{Object: "doc:" + object, Relation: "viewer", User: "user:anne"}
}

// One tuple is added to a Store of an idle system. The time is from the answer to the user's request to the tuple in
// OpenFGA.
func BenchmarkChangeToTuple(b *testing.B) {
	s := startInProcessServices(b, topology.Watcher, topology.StoreSync, topology.TupleSync)
	id := s.stores(b, 1)["bench-000"]
	took := make([]time.Duration, 0, b.N)
	for i := 0; b.Loop(); i++ {
		object := fmt.Sprint(i)
		s.kube.Apply(b, kinds.Stores(), "bench-000", corev1alpha1.StoreSpec{CoreModule: core, Tuples: []corev1alpha1.Tuple{tuple(object)}})
		begun := time.Now()
		for {
			_, found, err := s.openFGA.ReadTuple(b.Context(), id, key(object))
			if err != nil {
				b.Fatal(err)
			}
			if found {
				break
			}
			if time.Since(begun) > time.Minute {
				b.Fatal("the tuple does not come")
			}
			<-time.After(500 * time.Microsecond)
		}
		took = append(took, time.Since(begun))
		testenv.Eventually(b, time.Minute, s.idle(b))
	}
	slices.Sort(took)
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
}

// idle returns a check that every Store is Ready.
func (s *inProcessServices) idle(b *testing.B) func() error {
	return func() error {
		found, err := list[corev1alpha1.Store](b.Context(), s.objects, kinds.Stores())
		for name, store := range found {
			if !ready(store.Status.Conditions, store.Generation) {
				return fmt.Errorf("store %s is not Ready", name)
			}
		}
		return err
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

const (
	convergeStores = 100
	convergeTuples = 100
)

// 10,000 tuples are declared on 100 Stores while tuple-sync is down: how fast does it catch up after its start? In the
// same run, two loops write as many tuples to OpenFGA in calls of 100. The first loop only writes. The second one also
// records the tuples in the status of a Store before each call, and the result after it. A crash leaks no tuple only
// with these records.
func BenchmarkConverge10000Tuples(b *testing.B) {
	s := startInProcessServices(b)
	bare := s.loop(b, "bare", func(int, bool) {})
	recorded := s.loop(b, "recorded", s.recorder(b))
	if err := s.objects.Resource(kinds.Stores().GroupVersionResource()).DeleteCollection(b.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		b.Fatal(err)
	}
	s.start(b, topology.Watcher)
	s.start(b, topology.StoreSync)
	ids := s.stores(b, convergeStores)
	s.catchUp(b, -1, ids) // From now on the Stores have tuple-sync's finalizer.
	var entail time.Duration
	for round := 0; b.Loop(); round++ {
		entail += s.catchUp(b, round, ids)
	}
	each := entail.Seconds() / float64(b.N)
	const total = convergeStores * convergeTuples
	b.ReportMetric(total/each, "tuples/s")
	b.ReportMetric(total/bare.Seconds(), "bare-tuples/s")
	b.ReportMetric(bare.Seconds()/each, "of-bare")
	b.ReportMetric(recorded.Seconds()/each, "of-recorded")
}

// loop writes 10,000 tuples to its own stores, and calls record before and after each call. It returns the time.
func (s *inProcessServices) loop(b *testing.B, prefix string, record func(store int, done bool)) time.Duration {
	b.Helper()
	merged, err := model.Merge(model.Module{DSL: core}, nil, model.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	var stores, models [convergeStores]string
	for i := range stores {
		if stores[i], err = s.openFGA.CreateStore(b.Context(), fmt.Sprintf("%s-%d", prefix, i)); err != nil {
			b.Fatal(err)
		}
		if models[i], err = s.openFGA.WriteModel(b.Context(), stores[i], merged.Model); err != nil {
			b.Fatal(err)
		}
	}
	var keys []*openfgav1.TupleKey
	for i := range convergeTuples {
		keys = append(keys, key(fmt.Sprint(i)))
	}
	begun := time.Now()
	for i := range stores {
		record(i, false)
		if err := s.openFGA.Write(b.Context(), stores[i], models[i], keys, nil); err != nil {
			b.Fatal(err)
		}
		record(i, true)
	}
	return time.Since(begun)
}

// recorder returns a function that writes the status of Stores that no service watches.
func (s *inProcessServices) recorder(b *testing.B) func(store int, done bool) {
	b.Helper()
	client, err := kube.New(s.kube.AdminConfig(), "local", "test")
	if err != nil {
		b.Fatal(err)
	}
	tuples := tuplesOf(0)
	states := make([]event.Change, convergeStores)
	for i := range states {
		name := fmt.Sprintf("recorded-%d", i)
		s.kube.Apply(b, kinds.Stores(), name, corev1alpha1.StoreSpec{CoreModule: core, Tuples: tuples})
		if states[i], err = client.Get(b.Context(), kinds.Stores(), "", name); err != nil {
			b.Fatal(err)
		}
	}
	return func(store int, done bool) {
		synced := condition.New(corev1alpha1.TuplesSynced, done, corev1alpha1.Syncing, "")
		if done {
			synced.Reason = "Synced"
		}
		states[store], err = client.ApplyStatus(b.Context(), kinds.Stores(), states[store], corev1alpha1.StoreStatus{
			ManagedTuples: tuples, ManagedTuplesStoreID: "recorded",
			Conditions: condition.MergeConditions(nil, []string{synced.Type}, 1, metav1.Now(), synced),
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// tuplesOf returns the 100 tuples of every Store in one round.
func tuplesOf(round int) []corev1alpha1.Tuple {
	tuples := make([]corev1alpha1.Tuple, convergeTuples)
	for i := range tuples {
		tuples[i] = tuple(fmt.Sprintf("%d-%d", round, i))
	}
	return tuples
}

// catchUp gives every Store 100 tuples, starts tuple-sync and waits until OpenFGA holds them. The returned time
// excludes the later deletion of the tuples.
func (s *inProcessServices) catchUp(b *testing.B, round int, ids map[string]string) time.Duration {
	b.Helper()
	tuples := tuplesOf(round)
	for name := range ids {
		s.kube.Apply(b, kinds.Stores(), name, corev1alpha1.StoreSpec{CoreModule: core, Tuples: tuples})
	}
	<-time.After(time.Second) // By now the other services have processed it.
	begun := time.Now()
	stop := s.start(b, topology.TupleSync)
	last := key(fmt.Sprintf("%d-%d", round, convergeTuples-1))
	for name, id := range ids {
		testenv.Eventually(b, time.Minute, func() error {
			_, found, err := s.openFGA.ReadTuple(b.Context(), id, last)
			if err == nil && !found {
				err = fmt.Errorf("store %s lacks its tuples", name)
			}
			return err
		})
	}
	took := time.Since(begun)
	for name := range ids {
		s.kube.Apply(b, kinds.Stores(), name, corev1alpha1.StoreSpec{CoreModule: core})
	}
	testenv.Eventually(b, time.Minute, s.idle(b))
	stop()
	return took
}
