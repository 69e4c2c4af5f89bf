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
	// versionEvery is the number of checks of the stream between two checks of the API server's version.
	versionEvery = 15
	// rewoundFor is the number of check intervals for which a kind must stay rewound before a new epoch begins. One of
	// several API servers may lag.
	rewoundFor = 5
)

// errRewound means that the API server is at an earlier version than it or the stream had before.
var errRewound = errors.New("resource versions went back: the cluster was restored from a backup, or another client " +
	"wrote to the stream; everything is published again in a few seconds; if this lasts, delete the stream " +
	topology.Changes + ", and the watcher fills it again")

// errEpoch means that another epoch has begun.
var errEpoch = errors.New("a new epoch has begun")

// epochTracker holds the newest known epoch of the cluster.
type epochTracker struct {
	mu   sync.Mutex
	name string
}

func (e *epochTracker) currentEpoch() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.name
}

// advanceTo sets the epoch if it is later than the current one, and reports whether it did.
func (e *epochTracker) advanceTo(to string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	order, ok := event.CompareEpochs(to, e.name)
	if e.name != "" && (!ok || order <= 0) {
		return false
	}
	e.name = to
	return true
}

// beginEpoch begins an epoch, in which everything is swept again.
func (r *reflector) beginEpoch(epoch string) {
	if !r.epoch.advanceTo(epoch) {
		return
	}
	r.cfg.Metrics.epochs.Inc()
	r.cfg.Log.Warn("another epoch begins; everything is compared again", slog.String("epoch", epoch))
	for _, k := range r.allKindReflectors() {
		k.mu.Lock()
		restart := k.restart
		k.mu.Unlock()
		restart(errEpoch)
	}
}

// handleRewind records that a kind is rewound, and begins another epoch once that has lasted long enough.
func (k *kindReflector) handleRewind(ctx context.Context, cause error) {
	since := k.cfg.Rewinds.recordRewind(k.kindLabel(), cause)
	k.cfg.Metrics.rewound.WithLabelValues(k.kindLabel()).Set(1)
	left := rewoundFor*k.cfg.CheckInterval - time.Since(since)
	if left > 0 {
		backoff.Sleep(ctx, left)
		return
	}
	k.mu.Lock()
	epoch := k.epoch
	k.mu.Unlock()
	k.reflector.beginEpoch(event.NextEpoch(epoch))
}

// clearRewind records that a kind is not rewound any more.
func (k *kindReflector) clearRewind() {
	k.cfg.Rewinds.removeRewind(k.kindLabel())
	k.cfg.Metrics.rewound.WithLabelValues(k.kindLabel()).Set(0)
}

// detectRewinds reads the API server's versions at every interval. It is needed because a watch from a version in the
// future yields nothing.
func (r *reflector) detectRewinds(ctx context.Context) {
	for backoff.Sleep(ctx, versionEvery*r.cfg.CheckInterval) {
		for _, k := range r.allKindReflectors() {
			k.mu.Lock()
			synced, restart := k.sweep == nil && k.stream != "", k.restart
			k.mu.Unlock()
			if !synced {
				continue
			}
			if err := k.detectRewind(ctx); errors.Is(err, errRewound) {
				restart(err)
			}
		}
	}
}

// detectRewind returns [errRewound] if the API server is behind the known versions.
func (k *kindReflector) detectRewind(ctx context.Context) error {
	k.mu.Lock()
	epoch, seen, ahead := k.epoch, k.seen, k.ahead
	k.mu.Unlock()
	version, err := k.cfg.Source.CurrentResourceVersion(ctx, k.kind)
	if errors.Is(err, source.ErrNotServed) {
		return nil // The watch will report it.
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
		k.ahead = "" // If the stream is really ahead, the next sweep finds it.
	}
	return k.rewindErr(version, laterVersion(seen, ahead))
}

// rewindErr returns [errRewound] if the API server's version is before the known one.
func (k *kindReflector) rewindErr(version, known string) error {
	if order, err := compareResourceVersions(version, known); err == nil && order < 0 {
		return fmt.Errorf("%s is at version %s, known is %s: %w", k.kindLabel(), version, known, errRewound)
	}
	return nil
}

// laterVersion returns the later of two versions.
func laterVersion(a, b string) string {
	if order, err := compareResourceVersions(a, b); err == nil && order >= 0 {
		return a
	}
	return b
}
