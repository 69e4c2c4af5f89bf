package reflector

import (
	"context"
	"errors"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// These are the reasons for a new sweep of a kind.
var (
	errAgain  = errors.New("the stream has lost messages")
	errDue    = errors.New("the sweep is due")
	errSilent = errors.New("the watch sent neither a change nor a bookmark")
)

// These are the intervals at which a kind is listed again that the API server does not serve.
const (
	absentInterval         = time.Second
	absentOptionalInterval = 15 * time.Second
)

// followKind follows the kind until ctx ends or a fatal error occurs.
func (k *kindReflector) followKind(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		began := time.Now()
		err := k.relistAndWatch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // What ended with ctx is no error.
		case isFatal(err):
			return err
		}
		if time.Since(began) > 2*maxRetry {
			attempt = 1
		}
		if err == nil || errors.Is(err, errDue) || errors.Is(err, errEpoch) {
			continue
		}
		k.cfg.Health.recordKindInterrupted(k.kindLabel(), err)
		k.cfg.Log.WarnContext(ctx, "sweeping again", "kind", k.kindLabel(), "cause", err)
		if errors.Is(err, errRewound) {
			k.handleRewind(ctx, err)
		}
		if !retryBackoff().Wait(ctx, attempt) {
			return nil
		}
	}
}

// relistAndWatch sweeps and then watches. It returns the reason for the next sweep.
func (k *kindReflector) relistAndWatch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k.mu.Lock()
	k.restart = cancel
	k.mu.Unlock()
	err := k.relistAndWatchOnce(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (k *kindReflector) relistAndWatchOnce(ctx context.Context) error {
	s, err := k.beginRelist(ctx)
	if err != nil {
		return err
	}
	version, count, err := k.relistKind(ctx, s)
	if errors.Is(err, source.ErrNotServed) {
		if k.enqueueDeletionsAndMarker(s, "", 0, false); k.kind.Target {
			return err // The next attempt may find it in another version.
		}
		return k.waitUntilServed(ctx, err)
	}
	if err != nil {
		return err
	}
	if s.bodies {
		if err := k.auditSuspectTombstones(ctx, version); err != nil {
			return err
		}
	}
	k.enqueueDeletionsAndMarker(s, version, count, true)
	return k.watchFrom(ctx, version)
}

// waitUntilServed returns nil once the API server serves the kind. cause is the reason for the wait.
func (k *kindReflector) waitUntilServed(ctx context.Context, cause error) error {
	level, interval := slog.LevelWarn, absentInterval
	if k.kind.Optional {
		level, interval = slog.LevelInfo, absentOptionalInterval
	}
	k.cfg.Log.Log(ctx, level, "the API server does not serve a kind; waiting for it", "kind", k.kindLabel(), "version", k.kind.Version, "cause", cause)
	defer k.markWatchOpen()() // A kind that is not served counts as watched: it has no changes.
	for backoff.Sleep(ctx, interval) {
		_, err := k.cfg.Source.List(ctx, k.kind, "")
		if err == nil {
			return nil
		}
		if errors.Is(err, source.ErrNotServed) {
			k.recordAPIServerAnswer()
		}
	}
	return ctx.Err()
}

// watchFrom publishes the changes after version. It returns if the version has expired, the history was rewound, or the
// watch is forbidden. The caller then logs the error and sweeps the kind again.
func (k *kindReflector) watchFrom(ctx context.Context, version string) error {
	for attempt := 1; ; attempt++ {
		began := time.Now()
		next, err := k.watchOnce(ctx, version)
		if err != nil && (ctx.Err() != nil || errors.Is(err, source.ErrExpired) || errors.Is(err, errRewound) || apierrors.IsForbidden(err)) {
			return err
		}
		if next != version || time.Since(began) > 2*maxRetry {
			attempt = 1
		}
		version = next
		if err != nil {
			k.cfg.Log.InfoContext(ctx, "watch interrupted; going on", "kind", k.kindLabel(), "version", version, "error", err)
		}
		if !retryBackoff().Wait(ctx, attempt) {
			return ctx.Err()
		}
	}
}

// watchOnce processes the events of one watch and returns its last version. The server may be another one than before,
// or the same with a rewound history.
func (k *kindReflector) watchOnce(ctx context.Context, version string) (string, error) {
	if err := k.detectRewind(ctx); err != nil {
		return version, err
	}
	defer k.markWatchOpen()()
	for e, err := range k.cfg.Source.Watch(ctx, k.kind, version) {
		if err != nil {
			return version, err
		}
		k.recordAPIServerAnswer()
		if !e.Bookmark {
			if err := k.enqueueObservedState(ctx, e.Object); err != nil {
				return version, err
			}
		}
		version = e.Version
		k.mu.Lock()
		k.seen, k.bookmarked = laterVersion(version, k.seen), k.bookmarked || e.Bookmark
		k.mu.Unlock()
	}
	return version, nil
}
