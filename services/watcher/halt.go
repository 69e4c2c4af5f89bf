package watcher

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/fault"
)

// haltAnnotation of the Lease holds the reason while all services are halted. NATS does not hold it: forgeries come from
// there.
const haltAnnotation = "entail.dev/halted"

// maxResumeConflicts bounds the conflicts of a resume with renewals of the Lease.
const maxResumeConflicts = 20

// halt is the state in which services grant nothing, because messages were forged.
type halt struct {
	leases coordination.LeaseInterface
	name   string
	log    *slog.Logger

	mu     sync.Mutex
	reason string
	// written means that the Lease holds the reason.
	written bool
}

// Reason returns why services are halted, or an empty string.
func (h *halt) Reason() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reason
}

// Begin halts all services. The reason of an earlier halt stays.
func (h *halt) Begin(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason == "" {
		h.reason, h.written = reason, false
		h.log.Error("all services are halted", slog.String("reason", reason))
	}
}

// load reads the state of earlier terms. It tries again until ctx ends.
func (h *halt) load(ctx context.Context) {
	for ctx.Err() == nil {
		lease, err := h.leases.Get(ctx, h.name, metav1.GetOptions{})
		if err == nil {
			h.mu.Lock()
			h.reason, h.written = lease.Annotations[haltAnnotation], true
			h.mu.Unlock()
			return
		}
		h.log.WarnContext(ctx, "the Lease cannot be read; trying again", slog.Any("error", err))
		backoff.Sleep(ctx, leaseRetry)
	}
}

// run writes a new halt to the Lease, and ends one that the Lease no longer holds, until ctx ends.
func (h *halt) run(ctx context.Context) {
	for backoff.Sleep(ctx, leaseRetry) {
		if err := h.compare(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			h.log.WarnContext(ctx, "the halt is not compared with the Lease; trying again", slog.Any("error", err))
		}
	}
}

func (h *halt) compare(ctx context.Context) error {
	h.mu.Lock()
	reason, written := h.reason, h.written
	h.mu.Unlock()
	if reason == "" {
		return nil
	}
	lease, err := h.leases.Get(ctx, h.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if lease.Annotations[haltAnnotation] == "" && !written {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, haltAnnotation, reason)
		lease, err = h.leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason, h.written = lease.Annotations[haltAnnotation], true; h.reason == "" {
		h.log.InfoContext(ctx, "services are resumed")
	}
	return nil
}

// Resume ends the halt, and returns its reason. The leader, which may be another replica, tells services.
func (h *halt) Resume(ctx context.Context) (reason string, err error) {
	for range maxResumeConflicts {
		lease, err := h.leases.Get(ctx, h.name, metav1.GetOptions{})
		if err != nil {
			return "", fault.Unavailable(fmt.Errorf("resume services: %w", err))
		}
		if reason = lease.Annotations[haltAnnotation]; reason == "" {
			return "", nil
		}
		delete(lease.Annotations, haltAnnotation)
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
