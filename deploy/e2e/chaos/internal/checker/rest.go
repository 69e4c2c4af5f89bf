package checker

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// World is where a checker looks.
type World struct {
	Driver *workload.Driver
	FGA    *OpenFGA
	Bus    *Bus
	// Webhooks are the URLs of those that run.
	Webhooks func() []string
	// Ready is nil when every service says that it is ready.
	Ready func(context.Context) error
	// Snapshot is of the check that is going on.
	Snapshot *Snapshot
}

// checks lists what must hold at rest, a kind each. A new kind joins here.
func checks() []func(context.Context, *World) error {
	return []func(context.Context, *World) error{
		checkStores, checkAuthorizationModels, checkRecords, checkPolicyDocuments, checkDefinitions, checkImpliedRoles, checkRoleBindings, checkBus,
		checkAnswers,
		func(ctx context.Context, w *World) error { return w.Ready(ctx) },
	}
}

const (
	// oneCheck bounds one look at everything, on a busy machine too.
	oneCheck = time.Minute
	// calm is how long nothing must be written for a system to be at rest.
	calm = 1500 * time.Millisecond
	// pause between two looks.
	pause = 300 * time.Millisecond
)

// AtRest is nil when everything is as the objects say, and nobody is writing to them.
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
	if w.Snapshot, err = TakeSnapshot(ctx, w.Driver); err != nil {
		return nil, err
	}
	var errs []error
	for _, check := range checks() {
		errs = append(errs, check(ctx, w))
	}
	return w.Snapshot.Versions(), errors.Join(errs...)
}

// Settle waits until the system is at rest. Its error is what is not as it must be after that time.
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
