//go:build integration

package tuplesync_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
)

const tortureModules = 6

func TestTupleSyncConvergesUnderRandomFaults(t *testing.T) {
	b := newTestEnv(t)
	ids := map[string]string{}
	for _, name := range []string{"store-a", "store-b"} {
		b.store(name)
		ids[name] = b.synced(name, folders)
		b.write(ids[name], []string{foreign}, nil)
	}
	torture := &testenv.DisruptionSuite{
		Env: b.Env, Reflector: b.StartReflector(), Service: topology.TupleSync, OpenFGA: true,
		Serve:        func() *testenv.RunningService { return b.serve(short) },
		RandomChange: b.happen, CheckBackend: func() error { return b.asDeclared(ids) },
		Rounds: 3, ChangesPerDisruption: 11, ChangeInterval: 15 * time.Millisecond, ConvergeTimeout: 3 * soon, FailurePercent: 10,
	}
	torture.Run()
}

// happen does one thing that people do.
func (b *testEnv) happen(r *rand.Rand) {
	b.T.Helper()
	var texts []string
	for range r.IntN(4) {
		texts = append(texts, []string{first, second, third, "ship:1#captain@user:1", "document:7#owner@user:7"}[r.IntN(5)])
	}
	store := []string{"store-a", "store-b"}[r.IntN(2)]
	module := fmt.Sprintf("module-%d", r.IntN(tortureModules))
	switch n := r.IntN(10); {
	case n < 2:
		b.store(store, texts...)
	case n < 8:
		b.module(module, store, texts...)
	default:
		err := b.ResourceClient(models).Delete(b.T.Context(), module, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			b.T.Fatal(err)
		}
	}
}

// isStatusFinal reports whether a status has nothing more to say of tuples. That may take a while after
// OpenFGA is right: what another replica announced, it may still do. Of an object of which nothing was ever
// written it says nothing: before store-sync has decided on it, and here is none.
func isStatusFinal(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, corev1alpha1.TuplesSynced)
	return c == nil || c.Reason != plan.Syncing && c.Reason != corev1alpha1.BackendUnavailable
}

// asDeclared compares both stores with what the objects come to.
func (b *testEnv) asDeclared(ids map[string]string) error {
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
		if !isStatusFinal(s.Status.Conditions) {
			return fmt.Errorf("%s is still being written", s.Name)
		}
		each(s.Name, s.Spec.Tuples)
	}
	for _, u := range b.List(models).Items {
		m := decode[corev1alpha1.AuthorizationModel](b, u)
		if m.DeletionTimestamp != nil {
			return fmt.Errorf("%s is still being deleted", m.Name)
		}
		if !isStatusFinal(m.Status.Conditions) {
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

func decode[T any](b *testEnv, u unstructured.Unstructured) *T {
	b.T.Helper()
	object := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		b.T.Fatal(err)
	}
	return object
}
