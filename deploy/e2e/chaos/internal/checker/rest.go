package checker

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// World holds the servers and objects that checks read.
type World struct {
	Driver *workload.Driver
	FGA    *OpenFGA
	Bus    *Bus
	// Webhooks returns the URLs of the running webhooks.
	Webhooks func() []string
	// Ready returns nil if every service reports that it is ready.
	Ready func(context.Context) error
	// Snapshot holds the objects that the current check reads.
	Snapshot *Snapshot
	// Checked is the time at which that check began.
	Checked time.Time
}

// checks returns the checks of a system at rest, about one for each kind. Add a new kind here.
func checks() []func(context.Context, *World) error {
	return []func(context.Context, *World) error{
		checkStores, checkAuthorizationModels, checkRecords, checkPolicyDocuments, checkDefinitions, checkImpliedRoles, checkRoleBindings, checkBus,
		checkAnswers,
		func(ctx context.Context, w *World) error { return w.Ready(ctx) },
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

// AtRest returns nil if all checks pass twice and no object changed between.
func (w *World) AtRest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, oneCheck)
	defer cancel()
	before, err := w.check(ctx)
	if err != nil {
		return err
	}
	wait(ctx, calm)
	if _, err := w.check(ctx); err != nil {
		return err
	}
	if !maps.Equal(before, w.Snapshot.Versions()) {
		return errors.New("objects are still being written")
	}
	return nil
}

func (w *World) check(ctx context.Context) (versions map[string]string, err error) {
	w.Checked = time.Now()
	if w.Snapshot, err = TakeSnapshot(ctx, w.Driver); err != nil {
		return nil, err
	}
	var errs []error
	for _, check := range checks() {
		errs = append(errs, check(ctx, w))
	}
	return w.Snapshot.Versions(), errors.Join(errs...)
}

// Settle waits until the system is at rest, and returns the time that it took. After within, it returns the remaining
// errors.
func (w *World) Settle(ctx context.Context, within time.Duration) (time.Duration, error) {
	begun := time.Now()
	for {
		err := w.AtRest(ctx)
		if took := time.Since(begun); err == nil || took > within || ctx.Err() != nil {
			return took, err
		}
		wait(ctx, pause)
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
