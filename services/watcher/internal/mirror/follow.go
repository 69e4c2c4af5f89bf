package mirror

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// Why a feed is to sweep again.
var (
	errAgain = errors.New("the stream lost something")
	errDue   = errors.New("the time has come")
)

// How often a kind is looked for that the API server does not serve.
const (
	absentInterval         = time.Second
	absentOptionalInterval = 15 * time.Second
)

// run follows the kind until ctx ends or going on would do harm.
func (f *feed) run(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		began := time.Now()
		err := f.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // What ended with ctx is no error.
		case fatal(err):
			return err
		}
		if time.Since(began) > 2*maxRetry {
			attempt = 0
		}
		if err == nil || errors.Is(err, errDue) {
			continue
		}
		f.Log.WarnContext(ctx, "sweeping again", "kind", f.label(), "cause", err)
		if !pause(ctx, attempt) {
			return nil
		}
	}
}

// follow sweeps and then watches. It ends with the reason to sweep again.
func (f *feed) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.mu.Lock()
	f.restart = cancel
	f.mu.Unlock()
	err := f.followOnce(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (f *feed) followOnce(ctx context.Context) error {
	s, err := f.begin(ctx)
	if err != nil {
		return err
	}
	version, count, err := f.list(ctx, s)
	if errors.Is(err, source.ErrNotServed) {
		f.finish(s, "", 0, false)
		return f.await(ctx)
	}
	if err != nil {
		return err
	}
	f.finish(s, version, count, true)
	return f.watch(ctx, version)
}

// await ends when the API server serves the kind; that is no error.
func (f *feed) await(ctx context.Context) error {
	level, interval := slog.LevelWarn, absentInterval
	if f.kind.Optional {
		level, interval = slog.LevelInfo, absentOptionalInterval
	}
	f.Log.Log(ctx, level, "the API server does not serve a kind; waiting for it", "kind", f.label(), "version", f.kind.Version)
	for sleep(ctx, interval) {
		if _, err := f.Source.List(ctx, f.kind, ""); err == nil {
			return nil
		}
	}
	return ctx.Err()
}

// watch goes on from version until that is no longer possible.
func (f *feed) watch(ctx context.Context, version string) error {
	for attempt := 0; ; attempt++ {
		began := time.Now()
		next, err := f.watchOnce(ctx, version)
		if err != nil && (ctx.Err() != nil || errors.Is(err, source.ErrExpired)) {
			return err
		}
		if next != version || time.Since(began) > 2*maxRetry {
			attempt = 0
		}
		version = next
		if err != nil {
			f.Log.InfoContext(ctx, "watch interrupted; going on", "kind", f.label(), "version", version, "error", err)
		}
		if !pause(ctx, attempt) {
			return ctx.Err()
		}
	}
}

// watchOnce takes the events of one watch and tells how far it came.
func (f *feed) watchOnce(ctx context.Context, version string) (string, error) {
	for e, err := range f.Source.Watch(ctx, f.kind, version) {
		if err != nil {
			return version, err
		}
		if !e.Bookmark {
			if err := f.observe(ctx, e.Object); err != nil {
				return version, err
			}
		}
		version = e.Version
	}
	return version, nil
}
