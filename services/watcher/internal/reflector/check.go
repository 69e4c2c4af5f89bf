package reflector

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

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

// check makes sure of the marker, and of one object taken at random: of a stream that
// was purged each is missing.
func (k *kindReflector) check(ctx context.Context, incarnation string) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	k.mu.Lock()
	synced, stream, restart, due := k.sweep == nil && k.stream != "", k.stream, k.restart, time.Now().After(k.due)
	name, probe := k.probe()
	k.mu.Unlock()
	if !synced {
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
	if err != nil || !marked || name.Name == "" {
		return err
	}
	return k.verify(ctx, name, probe)
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

// probe picks an object: the one under suspicion, or any.
func (k *kindReflector) probe() (types.NamespacedName, head) {
	if h, ok := k.heads[k.suspect]; ok {
		return k.suspect, h
	}
	name, _ := publish.AnyKey(k.heads)
	return name, k.heads[name]
}

// overtaken notes what somebody else published; the caller holds the lock.
func (k *kindReflector) overtaken(by publish.Head) {
	if by.Epoch == k.epoch {
		k.ahead = newer(by.Version, k.ahead)
	}
}

// verify sweeps again when the message of an object is missing twice: once may be a
// replica of the stream that lags, or a deletion that just expired.
func (k *kindReflector) verify(ctx context.Context, name types.NamespacedName, probe head) error {
	last, err := k.cfg.Publisher.Last(ctx, k.key(name))
	missing := errors.Is(err, publish.ErrNone) || errors.Is(err, publish.ErrMalformed) || err == nil && last.Sequence < probe.sequence
	if err != nil && !missing {
		return err
	}
	k.mu.Lock()
	if err == nil && last.Sequence > probe.sequence {
		k.overtaken(last.Head)
	}
	before := k.suspect
	k.suspect = types.NamespacedName{}
	missing = missing && k.heads[name] == probe
	if missing && before != name {
		k.suspect, missing = name, false
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
