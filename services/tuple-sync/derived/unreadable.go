package derived

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

const (
	// readAgain is the time between two reads of a forbidden object.
	readAgain = 5 * time.Second
	// refusalGrace bounds how long reads may be forbidden before the kind counts as not followed, which removes its
	// tuples. A new API server may not have loaded its roles yet.
	refusalGrace = 10 * time.Second
)

// unreadable is an object that the API server forbids tuple-sync to read. lasts means that its kind counts as not
// followed.
type unreadable struct {
	change       event.Change
	why          string
	since, tried time.Time
	lasts        bool
}

// observationOf returns the watcher's observation of a kind, unless tuple-sync may not read the kind.
func (o *observed) observationOf(kind event.GroupResource) informer.Observation {
	is := o.of(kind)
	o.mu.RLock()
	defer o.mu.RUnlock()
	if f, forbidden := o.forbidden[kind]; forbidden && f.lasts && is.Observed {
		is.Observed = false
		is.Problem = "tuple-sync may not read it: " + f.why + ": apply what `entail iam observe` prints"
	}
	return is
}

// isForbidden records a forbidden read, and reports whether the kind now counts as not followed.
func (o *observed) isForbidden(change event.Change, why string) bool {
	kind, now := change.Key.GroupResource, time.Now()
	o.mu.Lock()
	f, known := o.forbidden[kind]
	if !known {
		f.since = now
	}
	f.change, f.why, f.tried, f.lasts = change, why, now, now.Sub(f.since) >= refusalGrace
	o.forbidden[kind] = f
	o.mu.Unlock()
	if f.lasts {
		o.storeObservation(kind)
	}
	return f.lasts
}

// dueForbidden returns the forbidden objects to read again.
func (o *observed) dueForbidden() map[event.GroupResource]event.Change {
	o.mu.Lock()
	defer o.mu.Unlock()
	due := map[event.GroupResource]event.Change{}
	for kind, f := range o.forbidden {
		if time.Since(f.tried) >= readAgain {
			f.tried = time.Now()
			o.forbidden[kind], due[kind] = f, f.change
		}
	}
	return due
}

func (o *observed) allowKind(kind event.GroupResource) {
	o.mu.Lock()
	delete(o.forbidden, kind)
	o.mu.Unlock()
	o.storeObservation(kind)
}

// handleForbidden handles a forbidden read of a target. Once that lasts, it returns [reconcile.ErrStale], so that the key is
// planned without the kind. It returns other errors unchanged.
func (r *Reconciler) handleForbidden(err error) error {
	unread := (*confirm.UnreadError)(nil)
	if errors.As(err, &unread) && unread.Change.Key.Target && errors.Is(err, kube.ErrForbidden) &&
		r.State.observed.isForbidden(unread.Change, kube.Refusal(err)) {
		return reconcile.ErrStale
	}
	return err
}

// readForbidden reads forbidden objects again, and follows kinds that it may read now.
func (r *Reconciler) readForbidden(ctx context.Context) {
	for kind, change := range r.State.observed.dueForbidden() {
		switch err := r.Confirmer.Readable(ctx, change); {
		case errors.Is(err, kube.ErrForbidden):
			r.State.observed.isForbidden(change, kube.Refusal(err))
		case !fault.IsUnavailable(err):
			r.State.observed.allowKind(kind)
			r.Log.InfoContext(ctx, "objects of a kind can be read again", slog.String("kind", kind.String()))
		}
	}
}
