package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

const (
	// versionEvery is after how many checks of the stream the API server is asked where it is.
	versionEvery = 15
	// rewoundFor is for how many of them a kind must have been back in time before that is believed:
	// one of several API servers may lag.
	rewoundFor = 5
)

// errRewound is returned when the API server is further back than what it, or the stream, told before.
var errRewound = errors.New("resource versions went back: the cluster was restored from a backup, or somebody else " +
	"wrote to the stream; if it stays so, everything is published anew in a few seconds; if this does not end, delete the stream " +
	topology.Changes + ", and it will be filled anew")

// errEpoch is returned when another epoch has begun.
var errEpoch = errors.New("a new epoch has begun")

// epoch is the one that the cluster is in, as far as is known.
type epoch struct {
	mu   sync.Mutex
	name string
}

func (e *epoch) current() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.name
}

// advance goes on to an epoch, if that is later than the current one.
func (e *epoch) advance(to string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	order, ok := event.CompareEpochs(to, e.name)
	if e.name != "" && (!ok || order <= 0) {
		return false
	}
	e.name = to
	return true
}

// begin begins an epoch, in which everything is swept again.
func (r *reflector) begin(epoch string) {
	if !r.epoch.advance(epoch) {
		return
	}
	r.cfg.Metrics.epochs.Inc()
	r.cfg.Log.Warn("another epoch begins; everything is compared anew", slog.String("epoch", epoch))
	for _, k := range r.all() {
		k.mu.Lock()
		restart := k.restart
		k.mu.Unlock()
		restart(errEpoch)
	}
}

// rewound tells that a kind is back in time, and begins another epoch when that has lasted.
func (k *kindReflector) rewound(ctx context.Context, cause error) {
	since := k.cfg.Rewinds.add(k.label(), cause)
	k.cfg.Metrics.rewound.WithLabelValues(k.label()).Set(1)
	left := rewoundFor*k.cfg.CheckInterval - time.Since(since)
	if left > 0 {
		backoff.Sleep(ctx, left)
		return
	}
	k.mu.Lock()
	epoch := k.epoch
	k.mu.Unlock()
	k.reflector.begin(event.NextEpoch(epoch))
}

// caughtUp notes that a kind is not back in time any more.
func (k *kindReflector) caughtUp() {
	k.cfg.Rewinds.end(k.label())
	k.cfg.Metrics.rewound.WithLabelValues(k.label()).Set(0)
}

// checkVersions asks the API server, again and again, where it is: a watch that goes on from a version
// which is still to come tells nothing.
func (r *reflector) checkVersions(ctx context.Context) {
	for backoff.Sleep(ctx, versionEvery*r.cfg.CheckInterval) {
		for _, k := range r.all() {
			k.mu.Lock()
			synced, restart := k.sweep == nil && k.stream != "", k.restart
			k.mu.Unlock()
			if !synced {
				continue
			}
			if err := k.checkVersion(ctx); errors.Is(err, errRewound) {
				restart(err)
			}
		}
	}
}

// checkVersion makes sure that the API server is not behind what is known.
func (k *kindReflector) checkVersion(ctx context.Context) error {
	k.mu.Lock()
	epoch, seen, ahead := k.epoch, k.seen, k.ahead
	k.mu.Unlock()
	version, err := k.cfg.Source.Version(ctx, k.kind)
	if errors.Is(err, source.ErrNotServed) {
		return nil // The watch will find out.
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.epoch != epoch {
		return nil
	}
	if k.ahead == ahead {
		k.ahead = "" // If it is ahead indeed, the sweep that follows finds it.
	}
	return k.compare(version, newer(seen, ahead))
}

// compare is [errRewound] when the API server's version is before what is known.
func (k *kindReflector) compare(version, known string) error {
	if order, err := compare(version, known); err == nil && order < 0 {
		return fmt.Errorf("%s is at version %s, known is %s: %w", k.label(), version, known, errRewound)
	}
	return nil
}

// newer is the later of two versions.
func newer(a, b string) string {
	if order, err := compare(a, b); err == nil && order >= 0 {
		return a
	}
	return b
}
