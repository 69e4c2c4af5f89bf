//go:build integration

package proof

import (
	"fmt"
	"slices"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
)

func tuple(object string) corev1alpha1.Tuple {
	return corev1alpha1.Tuple{Object: "doc:" + object, Relation: "viewer", User: "user:anne"}
}

func key(object string) *openfgav1.TupleKey {
	return &openfgav1.TupleKey{Object: "doc:" + object, Relation: "viewer", User: "user:anne"}
}

// One tuple is added to a Store of an idle system: from the answer to the person's
// request to the tuple in OpenFGA.
func BenchmarkChangeToTuple(b *testing.B) {
	s := startTogether(b, topology.Watcher, topology.StoreSync, topology.TupleSync)
	id := s.stores(b, 1)["bench-000"]
	took := make([]time.Duration, 0, b.N)
	for i := 0; b.Loop(); i++ {
		object := fmt.Sprint(i)
		s.kube.Apply(b, topology.Stores(), "bench-000", corev1alpha1.StoreSpec{CoreModule: core, Tuples: []corev1alpha1.Tuple{tuple(object)}})
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
		testbed.Eventually(b, time.Minute, s.idle(b))
	}
	slices.Sort(took)
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
}

// idle tells whether all that was asked for is in order.
func (s *together) idle(b *testing.B) func() error {
	return func() error {
		found, err := list[corev1alpha1.Store](b.Context(), s.objects, topology.Stores())
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

// 10,000 tuples are declared on 100 Stores while tuple-sync is down: how fast does it
// catch up from its start? Beside it, in the same run, a bare loop writes as many to
// OpenFGA by calls of 100.
func BenchmarkConverge10000Tuples(b *testing.B) {
	s := startTogether(b, topology.Watcher, topology.StoreSync)
	ids := s.stores(b, convergeStores)
	var bare, entail time.Duration
	for round := 0; b.Loop(); round++ {
		bare += s.bareLoop(b, round)
		entail += s.catchUp(b, round, ids)
	}
	total := float64(b.N) * convergeStores * convergeTuples
	b.ReportMetric(total/entail.Seconds(), "tuples/s")
	b.ReportMetric(total/bare.Seconds(), "bare-tuples/s")
	b.ReportMetric(bare.Seconds()/entail.Seconds(), "of-bare")
}

// bareLoop writes 10,000 tuples to stores of its own.
func (s *together) bareLoop(b *testing.B, round int) time.Duration {
	b.Helper()
	type target struct{ store, model string }
	targets := make([]target, 0, convergeStores)
	model, err := s.openFGA.LatestModel(b.Context(), s.stores(b, 0)["bench-000"])
	if err != nil {
		b.Fatal(err)
	}
	for i := range convergeStores {
		store, err := s.openFGA.CreateStore(b.Context(), fmt.Sprintf("bare-%d-%d", round, i))
		if err != nil {
			b.Fatal(err)
		}
		id, err := s.openFGA.WriteModel(b.Context(), store, model)
		if err != nil {
			b.Fatal(err)
		}
		targets = append(targets, target{store, id})
	}
	begun := time.Now()
	for _, t := range targets {
		var keys []*openfgav1.TupleKey
		for i := range convergeTuples {
			keys = append(keys, key(fmt.Sprintf("%d-%d", round, i)))
		}
		if err := s.openFGA.Write(b.Context(), t.store, t.model, keys, nil); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begun)
}

// catchUp gives every Store 100 tuples, starts tuple-sync and waits until OpenFGA holds
// them. What it took does not include taking them away again.
func (s *together) catchUp(b *testing.B, round int, ids map[string]string) time.Duration {
	b.Helper()
	var tuples []corev1alpha1.Tuple
	for i := range convergeTuples {
		tuples = append(tuples, tuple(fmt.Sprintf("%d-%d", round, i)))
	}
	for name := range ids {
		s.kube.Apply(b, topology.Stores(), name, corev1alpha1.StoreSpec{CoreModule: core, Tuples: tuples})
	}
	<-time.After(time.Second) // The others have seen it, too.
	begun := time.Now()
	stop := s.start(b, topology.TupleSync)
	last := key(fmt.Sprintf("%d-%d", round, convergeTuples-1))
	for name, id := range ids {
		testbed.Eventually(b, time.Minute, func() error {
			_, found, err := s.openFGA.ReadTuple(b.Context(), id, last)
			if err == nil && !found {
				err = fmt.Errorf("store %s lacks its tuples", name)
			}
			return err
		})
	}
	took := time.Since(begun)
	for name := range ids {
		s.kube.Apply(b, topology.Stores(), name, corev1alpha1.StoreSpec{CoreModule: core})
	}
	testbed.Eventually(b, time.Minute, s.idle(b))
	stop()
	return took
}
