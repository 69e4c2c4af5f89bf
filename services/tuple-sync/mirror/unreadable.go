package mirror

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/view"
)

const (
	// readAgain is how long until the API server is asked again for an object that it did not let tuple-sync read.
	readAgain = 5 * time.Second
	// refusalGrace is how long it may refuse before the kind counts as not followed: one that has just started may not know its
	// roles yet, and what is held on objects of the kind is removed then.
	refusalGrace = 10 * time.Second
)

// unreadable is an object that the API server does not let tuple-sync read, since when, and whether its kind counts as not followed.
type unreadable struct {
	change       event.Change
	why          string
	since, tried time.Time
	lasts        bool
}

// observation returns what is known of a kind, by the watcher and by what tuple-sync may read.
func (o *observed) observation(kind event.GroupResource) view.Observation {
	is := o.of(kind)
	o.mu.RLock()
	defer o.mu.RUnlock()
	if f, forbidden := o.forbidden[kind]; forbidden && f.lasts && is.Observed {
		is.Observed = false
		is.Problem = "tuple-sync may not read it: " + f.why + ": apply what `entail iam observe` prints"
	}
	return is
}

// forbid notes that an object cannot be read, and reports whether its kind counts as not followed from now on.
func (o *observed) forbid(change event.Change, why string) bool {
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
		o.take(kind)
	}
	return f.lasts
}

// due returns the objects that are to be read again.
func (o *observed) due() map[event.GroupResource]event.Change {
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

func (o *observed) allow(kind event.GroupResource) {
	o.mu.Lock()
	delete(o.forbidden, kind)
	o.mu.Unlock()
	o.take(kind)
}

// forbidden handles the error of a statement that the API server did not let tuple-sync confirm. Once that lasts, the key is
// planned again without objects of that kind; other errors are returned.
func (r *Reconciler) forbidden(err error) error {
	unread := (*confirm.UnreadError)(nil)
	if errors.As(err, &unread) && unread.Change.Key.Target && errors.Is(err, kube.ErrForbidden) &&
		r.State.observed.forbid(unread.Change, kube.Refusal(err)) {
		return reconcile.ErrStale
	}
	return err
}

// readForbidden reads again what the API server forbade, and follows kinds that it allows by now.
func (r *Reconciler) readForbidden(ctx context.Context) {
	for kind, change := range r.State.observed.due() {
		switch err := r.Confirmer.Readable(ctx, change); {
		case errors.Is(err, kube.ErrForbidden):
			r.State.observed.forbid(change, kube.Refusal(err))
		case !fault.IsUnavailable(err):
			r.State.observed.allow(kind)
			r.Log.InfoContext(ctx, "objects of a kind can be read again", slog.String("kind", kind.String()))
		}
	}
}
