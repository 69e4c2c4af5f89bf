package tuplesync

import (
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
)

// A forged change of another object of the same name blocks no revocation.
func TestForgedObjectOfSameNameDoesNotBlockRevocation(t *testing.T) {
	s := newFixture(t)
	m := s.module("m", one)
	s.reconcile()
	forged := *m
	forged.meta.UID, forged.meta.ResourceVersion, forged.tuples, forged.meta.Finalizers = "forged", "999999", nil, nil
	forged.status = corev1alpha1.StoreStatus{}
	s.receive(forged.change(t, false))
	s.reconcile()
	s.expect("doc:1#viewer@user:1")
	m.tuples = []corev1alpha1.Tuple{two}
	m.meta.Generation++
	s.receive(s.changed(m))
	s.reconcile()
	s.expect("doc:2#viewer@user:2")
}

// A forged rewind of a cluster's history removes no declared tuple.
func TestForgedRewindDoesNotRemoveTuples(t *testing.T) {
	s := newFixture(t)
	m := s.module("m", one)
	s.reconcile()
	clear(s.calls)
	forged := *m
	forged.tuples, forged.status = nil, corev1alpha1.StoreStatus{}
	told := forged.change(t, false)
	told.Epoch = event.NextEpoch(told.Epoch)
	s.receive(told)
	s.reconcile()
	s.expect("doc:1#viewer@user:1")
	if n := s.calls["write"]; n > 0 {
		t.Errorf("OpenFGA was changed %d times", n)
	}
}
