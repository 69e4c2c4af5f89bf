//go:build integration

package tuplesync_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

const (
	tortures       = 300
	torturePace    = 15 * time.Millisecond
	tortureModules = 6
)

// trouble fails calls: some, or all of them when the line is cut, which is what a crash looks like from outside.
type trouble struct{ cut, sometimes atomic.Bool }

func (f *trouble) fault(context.Context, string) error {
	if f.cut.Load() || f.sometimes.Load() && rand.IntN(10) == 0 {
		return errCut
	}
	return nil
}

func TestWhateverHappensOpenFGAHoldsWhatIsDeclared(t *testing.T) {
	b := newBed(t)
	ids := map[string]string{}
	for _, name := range []string{"store-a", "store-b"} {
		b.store(name)
		ids[name] = b.synced(name, folders)
		b.write(ids[name], []string{foreign}, nil)
	}
	m := b.Reflector()
	var f trouble
	f.sometimes.Store(true)
	b.OpenFGA.FailBefore(f.fault)
	b.OpenFGA.FailAfter(f.fault)
	b.Kube.FailBefore(f.fault)
	b.Kube.FailAfter(f.fault)
	r := b.serve()
	pace := time.NewTicker(torturePace)
	defer pace.Stop()
	for i := range tortures {
		<-pace.C
		b.happen()
		switch i % 100 {
		case 20: // A crash, as far as anybody else can see.
			f.cut.Store(true)
			r.Stop()
			f.cut.Store(false)
			r = b.serve()
		case 40:
			m.Replay()
		case 55:
			b.OpenFGA.Stop()
			b.OpenFGA.Start(t)
		case 70:
			b.NATS.Stop()
			b.NATS.Start(t)
		case 85:
			b.wipe(m)
		}
	}
	f.sometimes.Store(false)
	testbed.Eventually(t, 3*soon, func() error { return b.asDeclared(ids) })
	b.CaughtUp(topology.TupleSync)
	b.Settled()
	if err := b.asDeclared(ids); err != nil {
		t.Error(err)
	}
	b.Quiet("a replay", m.Replay)
	b.Quiet("a restart with everything anew", func() {
		r.Stop()
		if err := b.JS.DeleteConsumer(t.Context(), topology.Changes, topology.TupleSync); err != nil {
			t.Fatal(err)
		}
		b.serve()
		b.Settled()
		b.Resync(topology.TupleSync)
	})
}

// wipe deletes the bus's memory and lets it be told everything anew.
func (b *bed) wipe(m *testbed.Reflector) {
	b.T.Helper()
	defer m.Hold()()
	for _, stream := range []string{topology.Changes, topology.Sync} {
		if err := b.JS.DeleteStream(b.T.Context(), stream); err != nil {
			b.T.Fatal(err)
		}
	}
	if err := topology.Ensure(b.T.Context(), b.JS, 1); err != nil {
		b.T.Fatal(err)
	}
	m.Replay()
}

// happen does one thing that people do.
func (b *bed) happen() {
	b.T.Helper()
	var texts []string
	for range rand.IntN(4) {
		texts = append(texts, []string{first, second, third, "ship:1#captain@user:1", "document:7#owner@user:7"}[rand.IntN(5)])
	}
	store := []string{"store-a", "store-b"}[rand.IntN(2)]
	module := fmt.Sprintf("module-%d", rand.IntN(tortureModules))
	switch n := rand.IntN(10); {
	case n < 2:
		b.store(store, texts...)
	case n < 8:
		b.module(module, store, texts...)
	default:
		err := b.Resource(models).Delete(b.T.Context(), module, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			b.T.Fatal(err)
		}
	}
}

// concluded reports whether a status has nothing more to say of tuples. That may take a while after
// OpenFGA is right: what another replica announced, it may still do. Of an object of which nothing was ever
// written it says nothing: before store-sync has decided on it, and here is none.
func concluded(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, corev1alpha1.TuplesSynced)
	return c == nil || c.Reason != plan.Syncing && c.Reason != corev1alpha1.BackendUnavailable
}

// asDeclared compares both stores with what the objects come to.
func (b *bed) asDeclared(ids map[string]string) error {
	b.T.Helper()
	want := map[string][]string{"store-a": {foreign}, "store-b": {foreign}}
	each := func(store string, list []corev1alpha1.Tuple) {
		for _, t := range list {
			text := fmt.Sprintf("%s#%s@%s", t.Object, t.Relation, t.User)
			if t.Relation != "captain" && !slices.Contains(want[store], text) {
				want[store] = append(want[store], text)
			}
		}
	}
	for _, u := range b.List(stores).Items {
		s := decode[corev1alpha1.Store](b, u)
		if !concluded(s.Status.Conditions) {
			return fmt.Errorf("%s is still being written", s.Name)
		}
		each(s.Name, s.Spec.Tuples)
	}
	for _, u := range b.List(models).Items {
		m := decode[corev1alpha1.AuthorizationModel](b, u)
		if m.DeletionTimestamp != nil {
			return fmt.Errorf("%s is still being deleted", m.Name)
		}
		if !concluded(m.Status.Conditions) {
			return fmt.Errorf("%s is still being written", m.Name)
		}
		each(m.Spec.StoreRef.Name, m.Spec.Tuples)
	}
	for name, list := range want {
		slices.Sort(list)
		if got := b.holds(ids[name]); !slices.Equal(got, list) {
			return fmt.Errorf("store %s holds %v, want %v", name, got, list)
		}
	}
	return nil
}

func decode[T any](b *bed, u unstructured.Unstructured) *T {
	b.T.Helper()
	object := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		b.T.Fatal(err)
	}
	return object
}
