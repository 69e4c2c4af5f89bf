package watcher

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/barrier"
	"github.com/entail-dev/entail/services/internal/fault"
)

// Annotations of the Lease. NATS does not hold them: forgeries come from there.
const (
	// haltAnnotation holds the reason while all services are halted, and keyAnnotation the key of that halt.
	haltAnnotation = "entail.dev/halted"
	keyAnnotation  = "entail.dev/halt-key"
	// resumedAnnotation holds the keys of the last halts that were resumed, the newest first. Only a key in it ends a
	// halt.
	resumedAnnotation = "entail.dev/resumed"
	// maxResumed bounds the number of keys in resumedAnnotation.
	maxResumed = 8
)

// maxResumeConflicts bounds how often Resume tries again after the leader renewed the Lease in between.
const maxResumeConflicts = 20

// serviceHalt is the state in which services grant nothing, because messages were forged.
type serviceHalt struct {
	leases coordination.LeaseInterface
	name   string
	log    *slog.Logger

	mu          sync.Mutex
	reason, key string
	// written means that the Lease holds the halt.
	written bool
	// resumed holds the keys of earlier halts.
	resumed []string
}

// Reason returns why services are halted, or an empty string.
func (h *serviceHalt) Reason() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reason
}

// Begin halts all services. The reason of an earlier halt stays.
func (h *serviceHalt) Begin(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason == "" {
		h.reason, h.key, h.written = reason, rand.Text(), false
		h.log.Error("all services are halted", slog.String("reason", reason))
	}
}

// StampBarrier sets the fields of a barrier by which services halt or resume. The digest follows only once the Lease
// holds the key: services stay halted until they read the key.
func (h *serviceHalt) StampBarrier(b *eventv1.Barrier) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b.Halted, b.ResumeKeys = h.reason, h.resumed
	if h.written && h.key != "" {
		b.HaltDigest = barrier.HaltDigest(h.key)
	}
}

// AdoptFromBarrier begins the halt that a barrier of an earlier term announces, unless the Lease shows that it was
// resumed. The leader before may have ended before it wrote the Lease, or the Lease was deleted.
func (h *serviceHalt) AdoptFromBarrier(b *eventv1.Barrier) {
	h.mu.Lock()
	resumed := slices.ContainsFunc(h.resumed, func(key string) bool { return barrier.HaltDigest(key) == b.GetHaltDigest() })
	h.mu.Unlock()
	if b.GetHalted() != "" && !resumed {
		h.Begin(b.GetHalted())
	}
}

// loadFromLease reads the state of earlier terms. It tries again until ctx ends.
func (h *serviceHalt) loadFromLease(ctx context.Context) {
	for ctx.Err() == nil {
		lease, err := h.leases.Get(ctx, h.name, metav1.GetOptions{})
		if err == nil {
			h.mergeFromLease(lease)
			return
		}
		h.log.WarnContext(ctx, "the Lease cannot be read; trying again", slog.Any("error", err))
		backoff.Sleep(ctx, leaseRetry)
	}
}

// keepLeaseInSync writes a new halt to the Lease, and ends one that was resumed, until ctx ends.
func (h *serviceHalt) keepLeaseInSync(ctx context.Context) {
	for backoff.Sleep(ctx, leaseRetry) {
		if err := h.syncWithLease(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			h.log.WarnContext(ctx, "the halt is not compared with the Lease; trying again", slog.Any("error", err))
		}
	}
}

func (h *serviceHalt) syncWithLease(ctx context.Context) error {
	if h.Reason() == "" {
		return nil
	}
	lease, err := h.leases.Get(ctx, h.name, metav1.GetOptions{})
	if err != nil || h.mergeFromLease(lease) {
		return err
	}
	h.mu.Lock()
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, haltAnnotation, h.reason)
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, keyAnnotation, h.key)
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, resumedAnnotation, strings.Join(h.resumed, " "))
	h.mu.Unlock()
	if lease, err = h.leases.Update(ctx, lease, metav1.UpdateOptions{}); err == nil {
		h.mergeFromLease(lease)
	}
	return err
}

// mergeFromLease takes over the halt of the Lease. A halt that the Lease does not hold goes on until the Lease shows
// that it was resumed: the Lease may not hold it yet, or may have been deleted. It reports whether the Lease holds the
// same state.
func (h *serviceHalt) mergeFromLease(lease *coordinationv1.Lease) (same bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if keys := strings.Fields(lease.Annotations[resumedAnnotation]); len(keys) > 0 {
		h.resumed = keys
	}
	switch reason := lease.Annotations[haltAnnotation]; {
	case reason != "":
		key := lease.Annotations[keyAnnotation]
		h.reason, h.key, h.written = reason, cmp.Or(key, h.key, rand.Text()), key != ""
		return h.written
	case h.reason == "":
	case slices.Contains(h.resumed, h.key):
		h.log.Info("services are resumed")
		h.reason, h.key, h.written = "", "", false
	default:
		h.written = false
		return false
	}
	return true
}

// Resume ends the halt, and returns its reason. The leader, which may be another replica, announces it to services.
func (h *serviceHalt) Resume(ctx context.Context) (reason string, err error) {
	for range maxResumeConflicts {
		lease, err := h.leases.Get(ctx, h.name, metav1.GetOptions{})
		if err != nil {
			return "", fault.Unavailable(fmt.Errorf("resume services: %w", err))
		}
		if reason = lease.Annotations[haltAnnotation]; reason == "" {
			return "", nil
		}
		keys := append([]string{lease.Annotations[keyAnnotation]}, strings.Fields(lease.Annotations[resumedAnnotation])...)
		lease.Annotations[resumedAnnotation] = strings.Join(keys[:min(maxResumed, len(keys))], " ")
		delete(lease.Annotations, haltAnnotation)
		delete(lease.Annotations, keyAnnotation)
		_, err = h.leases.Update(ctx, lease, metav1.UpdateOptions{})
		if err == nil {
			return reason, nil
		}
		if !apierrors.IsConflict(err) {
			return "", fault.Unavailable(fmt.Errorf("resume services: %w", err))
		}
	}
	return "", fault.Unavailable(fmt.Errorf("resume services: the Lease changed %d times meanwhile", maxResumeConflicts))
}
