package watcher

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/barrier"
)

// fakeLeaseAPI is an API server that holds one Lease.
type fakeLeaseAPI struct {
	coordination.LeaseInterface

	lease coordinationv1.Lease
	err   error
}

func (l *fakeLeaseAPI) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.lease.DeepCopy(), l.err
}

func (l *fakeLeaseAPI) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if l.err == nil {
		l.lease = *lease.DeepCopy()
	}
	return lease, l.err
}

// replica returns the halt of a replica that reads the Lease.
func (l *fakeLeaseAPI) replica(t *testing.T) *serviceHalt {
	t.Helper()
	return &serviceHalt{leases: l, name: "watcher", log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

func awaitAnnouncedHolder(h *serviceHalt) *eventv1.Barrier {
	b := &eventv1.Barrier{}
	h.StampBarrier(b)
	return b
}

func TestHaltIsKeptInLease(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, l *fakeLeaseAPI, h *serviceHalt) *serviceHalt{
		"another term before it is written": func(t *testing.T, _ *fakeLeaseAPI, h *serviceHalt) *serviceHalt {
			h.loadFromLease(t.Context())
			return h
		},
		"a restart before it is written": func(t *testing.T, l *fakeLeaseAPI, h *serviceHalt) *serviceHalt {
			next := l.replica(t)
			next.loadFromLease(t.Context())
			next.AdoptFromBarrier(awaitAnnouncedHolder(h))
			return next
		},
		"a restart after it is written": func(t *testing.T, l *fakeLeaseAPI, h *serviceHalt) *serviceHalt {
			_ = h.syncWithLease(t.Context())
			next := l.replica(t)
			next.loadFromLease(t.Context())
			return next
		},
		"the deletion of the Lease": func(t *testing.T, l *fakeLeaseAPI, h *serviceHalt) *serviceHalt {
			_ = h.syncWithLease(t.Context())
			l.lease = coordinationv1.Lease{}
			_ = h.syncWithLease(t.Context())
			return h
		},
		"the deletion of the Lease, and a restart": func(t *testing.T, l *fakeLeaseAPI, h *serviceHalt) *serviceHalt {
			_ = h.syncWithLease(t.Context())
			l.lease = coordinationv1.Lease{}
			next := l.replica(t)
			next.loadFromLease(t.Context())
			next.AdoptFromBarrier(awaitAnnouncedHolder(h))
			return next
		},
		"a Lease that loses its annotations": func(t *testing.T, l *fakeLeaseAPI, h *serviceHalt) *serviceHalt {
			_ = h.syncWithLease(t.Context())
			l.lease.Annotations = nil
			h.loadFromLease(t.Context())
			return h
		},
	} {
		l := &fakeLeaseAPI{}
		h := l.replica(t)
		h.Begin("forged")
		h = change(t, l, h)
		if h.Reason() == "" {
			t.Errorf("%s ends the halt", name)
			continue
		}
		if err := h.syncWithLease(t.Context()); err != nil || l.lease.Annotations[haltAnnotation] == "" {
			t.Errorf("%s: the Lease holds %v, %v", name, l.lease.Annotations, err)
		}
		if _, err := l.replica(t).Resume(t.Context()); err != nil {
			t.Error(err)
		}
		digest := awaitAnnouncedHolder(h).GetHaltDigest()
		if err := h.syncWithLease(t.Context()); err != nil || h.Reason() != "" {
			t.Errorf("%s: after Resume the halt is %q, %v", name, h.Reason(), err)
		}
		if keys := awaitAnnouncedHolder(h).GetResumeKeys(); digest == "" || len(keys) != 1 || barrier.HaltDigest(keys[0]) != digest {
			t.Errorf("%s: the halt %s is resumed by the keys %q", name, digest, keys)
		}
	}
}

func TestResumedHaltIsNotAdopted(t *testing.T) {
	l := &fakeLeaseAPI{}
	h := l.replica(t)
	h.Begin("forged")
	_ = h.syncWithLease(t.Context())
	last := awaitAnnouncedHolder(h)
	if _, err := h.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := l.replica(t)
	next.loadFromLease(t.Context())
	if next.AdoptFromBarrier(last); next.Reason() != "" {
		t.Errorf("a halt that was resumed begins again: %s", next.Reason())
	}
}

func TestHaltLacksDigestUntilLeaseHoldsItsKey(t *testing.T) {
	l := &fakeLeaseAPI{err: errors.New("down")}
	h := l.replica(t)
	h.Begin("forged")
	_ = h.syncWithLease(t.Context())
	if b := awaitAnnouncedHolder(h); b.GetHalted() == "" || b.GetHaltDigest() != "" {
		t.Errorf("the barrier announces %q with the digest %q", b.GetHalted(), b.GetHaltDigest())
	}
}

func TestLeaseHoldsBoundedNumberOfKeys(t *testing.T) {
	l := &fakeLeaseAPI{}
	h := l.replica(t)
	var keys []string
	for range maxResumed + 2 {
		h.Begin("forged")
		_ = h.syncWithLease(t.Context())
		keys = append(keys, h.key)
		if _, err := h.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = h.syncWithLease(t.Context())
	}
	slices.Reverse(keys)
	if got := awaitAnnouncedHolder(h).GetResumeKeys(); !slices.Equal(got, keys[:maxResumed]) {
		t.Errorf("got the keys %q, want %q", got, keys[:maxResumed])
	}
}
