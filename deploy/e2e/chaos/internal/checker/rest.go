package checker

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// CheckedSystem holds the servers and objects that checks read.
type CheckedSystem struct {
	Driver *workload.Driver
	FGA    *OpenFGAClient
	Bus    *Bus
	// Webhooks returns the URLs of the running webhooks.
	Webhooks func() []string
	// Ready returns nil if every service reports that it is ready.
	Ready func(context.Context) error
	// Snapshot holds the objects that the current check reads.
	Snapshot *ObjectSnapshot
	// Checked is the time at which that check began.
	Checked time.Time
}

// allChecks returns the checks of a system at rest, about one for each kind. Add a new kind here.
func allChecks() []func(context.Context, *CheckedSystem) error {
	return []func(context.Context, *CheckedSystem) error{
		checkStores, checkAuthorizationModels, checkRecords, checkPolicyDocuments, checkDefinitions, checkImpliedRoles, checkRoleBindings, checkBus,
		checkAnswers,
		func(ctx context.Context, w *CheckedSystem) error { return w.Ready(ctx) },
	}
}

const (
	// oneCheck bounds one pass of all checks, on a busy machine too.
	oneCheck = time.Minute
	// calm is the time without writes after which a system is at rest.
	calm = 1500 * time.Millisecond
	// pause is the time between two attempts.
	pause = 300 * time.Millisecond
)

// CheckQuiescence returns nil if all checks pass twice and no object changed between.
func (w *CheckedSystem) CheckQuiescence(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, oneCheck)
	defer cancel()
	before, err := w.runChecks(ctx)
	if err != nil {
		return err
	}
	sleepContext(ctx, calm)
	if _, err := w.runChecks(ctx); err != nil {
		return err
	}
	if !maps.Equal(before, w.Snapshot.ResourceVersions()) {
		return errors.New("objects are still being written")
	}
	return nil
}

func (w *CheckedSystem) runChecks(ctx context.Context) (versions map[string]string, err error) {
	w.Checked = time.Now()
	if w.Snapshot, err = TakeSnapshot(ctx, w.Driver); err != nil {
		return nil, err
	}
	var errs []error
	for _, check := range allChecks() {
		errs = append(errs, check(ctx, w))
	}
	return w.Snapshot.ResourceVersions(), errors.Join(errs...)
}

// WaitQuiescent waits until the system is at rest, and returns the time that it took. After within, it returns the remaining
// errors.
func (w *CheckedSystem) WaitQuiescent(ctx context.Context, within time.Duration) (time.Duration, error) {
	begun := time.Now()
	for {
		err := w.CheckQuiescence(ctx)
		if took := time.Since(begun); err == nil || took > within || ctx.Err() != nil {
			return took, err
		}
		sleepContext(ctx, pause)
	}
}

func sleepContext(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
