package campaign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/checker"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/history"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/nemesis"
)

const (
	// replayEvery is the number of rounds from one replay to the next.
	replayEvery = 4
	// healWithin bounds the time in which all temporary blows must be healed.
	healWithin = 2 * time.Minute
)

// runRound strikes during operations, then waits for rest. Lasting blows are healed after that, and the system must come
// to rest again.
func (e *episode) runRound(ctx context.Context, number int) error {
	e.struck = nil
	lasting, err := e.injectAll(ctx, e.nemesis.DrawRound())
	if err != nil {
		return err
	}
	if err := e.waitQuiescent(ctx); err != nil {
		return err
	}
	if len(lasting) > 0 {
		for _, heal := range lasting {
			if err := heal(); err != nil {
				return err
			}
		}
		if err := e.waitQuiescent(ctx); err != nil {
			return fmt.Errorf("after it was healed: %w", err)
		}
	}
	if number%replayEvery == 0 {
		return e.checkReplay(ctx)
	}
	return nil
}

// injectAll strikes each blow during a burst of changes, because most faults show then. It returns the functions that
// heal lasting blows.
func (e *episode) injectAll(ctx context.Context, strikes []nemesis.FaultInjection) (lasting []func() error, err error) {
	e.target.RecordHandledCounts(ctx)
	if err := e.runOperations(ctx, 1+e.plan.IntN(6), 200*time.Millisecond); err != nil {
		return nil, err
	}
	for _, s := range strikes {
		if err := e.runOperations(ctx, 2+e.plan.IntN(4), 0); err != nil {
			return nil, err
		}
		sleepContext(ctx, randomUpTo(e.plan, 60*time.Millisecond))
		heal, err := e.injectFault(ctx, s)
		if err != nil {
			return nil, err
		}
		if s.Lasting {
			lasting = append(lasting, heal)
		} else {
			e.afflicts.Go(func() { e.healAfter(ctx, s.For, heal) })
		}
		if err := e.operateUnderFault(ctx); err != nil {
			return nil, err
		}
	}
	return lasting, e.waitHealed(ctx)
}

// operateUnderFault makes changes under a blow: a burst, a pause in which the system may or may not process it, and slower
// changes.
func (e *episode) operateUnderFault(ctx context.Context) error {
	if err := e.runOperations(ctx, 2+e.plan.IntN(6), 150*time.Millisecond); err != nil {
		return err
	}
	sleepContext(ctx, randomUpTo(e.plan, 2500*time.Millisecond))
	return e.runOperations(ctx, 2+e.plan.IntN(6), time.Second)
}

// runOperations executes n operations, with a random pause of at most pause after each.
func (e *episode) runOperations(ctx context.Context, n int, pause time.Duration) error {
	for range n {
		o := e.workload.NextOperation()
		e.beginOperation(o)
		if err := e.world.Driver.Execute(ctx, o); err != nil {
			return err
		}
		sleepContext(ctx, randomUpTo(e.plan, pause))
	}
	return nil
}

// injectFault strikes a blow, and returns the function that heals it.
func (e *episode) injectFault(ctx context.Context, s nemesis.FaultInjection) (heal func() error, err error) {
	text := s.Blow + " " + s.Text
	e.struck = append(e.struck, text)
	e.report.Blows[s.Blow]++
	e.history.Addf(history.Blow, "%s", text)
	undo, err := s.Do(ctx, e.target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return func() error {
		if undo != nil {
			if err := undo(); err != nil {
				return err
			}
		}
		e.history.Addf(history.Heal, "%s", text)
		return nil
	}, nil
}

// healAfter heals a temporary blow after d.
func (e *episode) healAfter(ctx context.Context, d time.Duration, heal func() error) {
	sleepContext(ctx, d)
	if err := heal(); err != nil {
		e.recordViolation(err)
	}
}

// waitHealed waits until every temporary blow has been healed.
func (e *episode) waitHealed(ctx context.Context) error {
	done := make(chan struct{})
	go func() { e.afflicts.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(healWithin):
		return errors.New("blows are not healed")
	}
}

// errSeen ends a round because of violations that are already recorded.
var errSeen = errors.New("violations were seen")

// waitQuiescent waits for rest and informs the monitor. It returns an error if the system does not come to rest, or if
// violations were observed.
func (e *episode) waitQuiescent(ctx context.Context) error {
	took, err := e.world.WaitQuiescent(ctx, e.cfg.Settle)
	e.report.Slowest = max(e.report.Slowest, took)
	if err != nil {
		return checker.Violation{Kind: checker.Loss, Err: fmt.Errorf("not at rest after %s: %w", took.Round(time.Second), err)}
	}
	if err := e.recorder.ReportWrongAllows(ctx); err != nil {
		return err
	}
	if len(e.violations()) > 0 {
		return errSeen
	}
	e.history.Addf(history.Check, "at rest after %s", took.Round(time.Millisecond))
	e.monitor.NoteQuiescence(e.world.Snapshot)
	e.recorder.NoteQuiescence(e.world.Checked)
	return nil
}

// checkReplay makes every service compare everything again, and requires that nothing is written. In half of the cases it
// restarts the services first.
func (e *episode) checkReplay(ctx context.Context) error {
	before, err := e.counter.ReadCounts(ctx)
	if err != nil {
		return err
	}
	e.report.Replays++
	restart := e.plan.IntN(2) == 0
	e.history.Addf(history.Check, "replay, services started anew: %t", restart)
	if restart {
		for _, r := range e.system.Services {
			r.Process.Kill()
			if err := r.Process.Start(); err != nil {
				return err
			}
		}
	}
	if err := e.world.Bus.ReplayAll(ctx); err != nil {
		return err
	}
	if err := e.waitQuiescent(ctx); err != nil {
		return fmt.Errorf("after a replay: %w", err)
	}
	after, err := e.counter.ReadCounts(ctx)
	if err != nil {
		return err
	}
	if err := after.WritesSinceErr(before); err != nil {
		return checker.Violation{Kind: checker.Write, Err: fmt.Errorf("a replay of everything, at rest, wrote: %w", err)}
	}
	return nil
}

func randomUpTo(r *rand.Rand, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(r.Int64N(int64(most)))
}

func sleepContext(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
