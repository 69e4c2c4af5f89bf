package reflector

import (
	"context"
	"errors"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/publish"
)

// check looks at the streams from outside until ctx ends. Someone may delete, purge,
// replace or change them, and nobody would be told.
func (r *reflector) check(ctx context.Context) {
	for backoff.Sleep(ctx, r.cfg.CheckInterval) {
		began := time.Now()
		err := r.checkOnce(ctx)
		r.cfg.Health.streamChecked(began, err)
		if err != nil && ctx.Err() == nil {
			r.warnings.Do(func() { r.cfg.Log.WarnContext(ctx, "stream cannot be checked", "error", err) })
		}
	}
}

func (r *reflector) checkOnce(ctx context.Context) error {
	if err := r.restore(ctx); err != nil {
		return err
	}
	look, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	incarnation, err := r.incarnation(look)
	if err != nil {
		return err
	}
	for _, k := range r.kinds {
		if err := k.check(ctx, incarnation); err != nil {
			return err
		}
	}
	return r.targets.check(ctx, incarnation)
}

// check makes sure of the marker, and of one message: of a stream that was purged each is missing, of one that was restored from a
// backup, or lost what its server had not written down, the last.
func (k *kindReflector) check(ctx context.Context, incarnation string) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	k.mu.Lock()
	synced, stream, restart, due := k.sweep == nil && k.stream != "", k.stream, k.restart, time.Now().After(k.due)
	probe, silent := k.probe(), k.isSilent(time.Now())
	k.mu.Unlock()
	if !synced {
		return nil
	}
	if silent {
		restart(errSilent)
		return nil
	}
	if due {
		restart(errDue)
		return nil
	}
	if stream != incarnation {
		restart(errAgain)
		return nil
	}
	marked, err := k.hasMarker(ctx, incarnation)
	if err == nil && !marked {
		restart(errAgain)
	}
	if err != nil || !marked || probe.name.Name == "" {
		return err
	}
	return k.verify(ctx, probe)
}

// hasMarker reports whether the marker of a life of the stream is there, if there is to be one.
func (k *kindReflector) hasMarker(ctx context.Context, incarnation string) (bool, error) {
	if k.kind.Named {
		return true, nil
	}
	written, err := k.cfg.Publisher.LastMarker(ctx, k.cfg.Cluster, k.kind.GroupResource)
	if nothing(err) {
		return false, nil
	}
	return written.GetStream() == incarnation && k.right(written), err
}

// probe picks a message: the one under suspicion; or in turns that which came last, be it of a deletion, and that of any object.
func (k *kindReflector) probe() message {
	k.turn++
	switch {
	case k.stands(k.suspect):
		return k.suspect
	case k.turn%2 == 0 && k.newest.sequence > 0:
		return k.newest
	}
	name, _ := publish.AnyKey(k.heads)
	return message{name, k.heads[name].sequence}
}

// stands says whether a message should still be there.
func (k *kindReflector) stands(m message) bool {
	return m.sequence > 0 && (m == k.newest || m.sequence == k.heads[m.name].sequence)
}

// overtaken notes what somebody else published; the caller holds the lock.
func (k *kindReflector) overtaken(by publish.Head) {
	if by.Epoch == k.epoch {
		k.ahead = newer(by.Version, k.ahead)
	}
}

// verify sweeps again when a message is missing twice: once may be a replica of the stream that lags.
// A deletion that came last and has expired is missing, too: then there is nothing to find.
func (k *kindReflector) verify(ctx context.Context, probe message) error {
	last, err := k.cfg.Publisher.Last(ctx, k.key(probe.name))
	missing := errors.Is(err, publish.ErrNone) || errors.Is(err, publish.ErrMalformed) || err == nil && last.Sequence < probe.sequence
	if err != nil && !missing {
		return err
	}
	k.mu.Lock()
	if err == nil && last.Sequence > probe.sequence {
		k.overtaken(last.Head)
	}
	before := k.suspect
	k.suspect = message{}
	missing = missing && k.stands(probe)
	if missing && before != probe {
		k.suspect, missing = probe, false
	}
	k.mu.Unlock()
	if !missing {
		return nil
	}
	if err := k.cfg.Publisher.Unmark(ctx, k.cfg.Cluster, k.kind.GroupResource); err != nil {
		return err
	}
	k.sweepAgain()
	return nil
}
