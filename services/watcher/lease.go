package watcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseUnheard bounds the time without an answer of the API server about the Lease.
const leaseUnheard = leaseDuration + 2*time.Second

// observedLease wraps the Lease and keeps the last answers about it.
type observedLease struct {
	resourcelock.Interface

	mu     sync.Mutex
	heard  time.Time
	holder string
	// transitions is the number of changes of holders, by the last record that this replica wrote.
	transitions int
	err         error
	// refused is the error if this replica may not write the Lease, else nil.
	refused error
}

// Get reads the Lease and records its holder.
func (l *observedLease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	switch {
	case err == nil:
		l.recordHolder(record.HolderIdentity, nil)
	case apierrors.IsNotFound(err):
		l.recordHolder("", nil)
	default:
		l.recordHolder("", err)
	}
	return record, raw, err
}

// Create creates the Lease and records the result.
func (l *observedLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	l.recordWrite(record, err)
	return err
}

// Update takes, renews or releases the Lease, and records the result.
func (l *observedLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, record)
	l.recordWrite(record, err)
	return err
}

// recordWrite records the result of a write. After a conflict only the next read returns the holder.
func (l *observedLease) recordWrite(record resourcelock.LeaderElectionRecord, err error) {
	l.mu.Lock()
	if l.refused = nil; apierrors.IsForbidden(err) {
		l.refused = err
	}
	if err == nil {
		l.transitions = record.LeaderTransitions
	}
	l.mu.Unlock()
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		l.recordHolder(record.HolderIdentity, err)
	}
}

func (l *observedLease) recordHolder(holder string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err = err; err == nil {
		l.heard, l.holder = time.Now(), holder
	}
}

// currentTerm numbers the term of this replica. A later holder of the Lease has a higher number.
func (l *observedLease) currentTerm() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(max(l.transitions, 0))
}

// readTerm reads the term of the present holder from the API server.
func readTerm(ctx context.Context, leases coordination.LeaseInterface, name string) (uint64, error) {
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("read the Lease: %w", err)
	}
	if lease.Spec.LeaseTransitions == nil {
		return 0, nil
	}
	return uint64(max(*lease.Spec.LeaseTransitions, 0)), nil
}

// Err returns nil while a leader is known and this replica could lead.
func (l *observedLease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch silent := time.Since(l.heard); {
	case l.refused != nil:
		return fmt.Errorf("the Lease cannot be written: %w", l.refused)
	case l.heard.IsZero() && l.err != nil:
		return fmt.Errorf("the Lease cannot be read: %w", l.err)
	case l.heard.IsZero():
		return errors.New("the Lease has not been read from the API server yet")
	case silent > leaseUnheard && l.err != nil:
		return fmt.Errorf("the Lease was not read for %s: %w", silent.Round(time.Second), l.err)
	case silent > leaseUnheard:
		return fmt.Errorf("the Lease was not read for %s", silent.Round(time.Second))
	case l.holder == "":
		return errors.New("no replica leads")
	}
	return nil
}
