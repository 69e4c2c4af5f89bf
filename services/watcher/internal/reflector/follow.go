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
	errAgain  = errors.New("the stream lost something")
	errDue    = errors.New("the time has come")
	errSilent = errors.New("the watch sent neither a change nor a bookmark")
)

// These are the intervals at which a kind is listed again that the API server does not serve.
const (
	absentInterval         = time.Second
	absentOptionalInterval = 15 * time.Second
)

// run follows the kind until ctx ends or a fatal error occurs.
func (k *kindReflector) run(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		began := time.Now()
		err := k.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // What ended with ctx is no error.
		case fatal(err):
			return err
		}
		if time.Since(began) > 2*maxRetry {
			attempt = 1
		}
		if err == nil || errors.Is(err, errDue) || errors.Is(err, errEpoch) {
			continue
		}
		k.cfg.Health.interrupted(k.label(), err)
		k.cfg.Log.WarnContext(ctx, "sweeping again", "kind", k.label(), "cause", err)
		if errors.Is(err, errRewound) {
			k.rewound(ctx, err)
		}
		if !retries().Wait(ctx, attempt) {
			return nil
		}
	}
}

// follow sweeps and then watches. It returns the reason for the next sweep.
func (k *kindReflector) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k.mu.Lock()
	k.restart = cancel
	k.mu.Unlock()
	err := k.followOnce(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (k *kindReflector) followOnce(ctx context.Context) error {
	s, err := k.begin(ctx)
	if err != nil {
		return err
	}
	version, count, err := k.list(ctx, s)
	if errors.Is(err, source.ErrNotServed) {
		if k.finish(s, "", 0, false); k.kind.Target {
			return err // The next attempt may find it in another version.
		}
		return k.await(ctx, err)
	}
	if err != nil {
		return err
	}
	k.finish(s, version, count, true)
	return k.watch(ctx, version)
}

// await returns nil once the API server serves the kind. cause is the reason for the wait.
func (k *kindReflector) await(ctx context.Context, cause error) error {
	level, interval := slog.LevelWarn, absentInterval
	if k.kind.Optional {
		level, interval = slog.LevelInfo, absentOptionalInterval
	}
	k.cfg.Log.Log(ctx, level, "the API server does not serve a kind; waiting for it", "kind", k.label(), "version", k.kind.Version, "cause", cause)
	defer k.open()() // A kind that is not served counts as watched: it has no changes.
	for backoff.Sleep(ctx, interval) {
		_, err := k.cfg.Source.List(ctx, k.kind, "")
		if err == nil {
			return nil
		}
		if errors.Is(err, source.ErrNotServed) {
			k.hear()
		}
	}
	return ctx.Err()
}

// watch publishes the changes after version. It returns if the version has expired, the history was rewound, or the
// watch is forbidden. The caller then logs the error and sweeps the kind again.
func (k *kindReflector) watch(ctx context.Context, version string) error {
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
			k.cfg.Log.InfoContext(ctx, "watch interrupted; going on", "kind", k.label(), "version", version, "error", err)
		}
		if !retries().Wait(ctx, attempt) {
			return ctx.Err()
		}
	}
}

// watchOnce processes the events of one watch and returns its last version. The server may be another one than before,
// or the same with a rewound history.
func (k *kindReflector) watchOnce(ctx context.Context, version string) (string, error) {
	if err := k.checkVersion(ctx); err != nil {
		return version, err
	}
	defer k.open()()
	for e, err := range k.cfg.Source.Watch(ctx, k.kind, version) {
		if err != nil {
			return version, err
		}
		k.hear()
		if !e.Bookmark {
			if err := k.observe(ctx, e.Object); err != nil {
				return version, err
			}
		}
		version = e.Version
		k.mu.Lock()
		k.seen, k.bookmarked = newer(version, k.seen), k.bookmarked || e.Bookmark
		k.mu.Unlock()
	}
	return version, nil
}
