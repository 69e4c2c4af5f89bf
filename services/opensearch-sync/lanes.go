package opensearchsync

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
)

const (
	// slowAfter is the time of a run after which its cluster counts as slow.
	slowAfter = 5 * time.Second
	// largeRuns bounds the runs that hold large lists at a time, whatever cluster they are of.
	largeRuns = 2
	// laneTimeout bounds the wait of a run for room for large lists.
	laneTimeout = 10 * time.Second
)

// errBusy means that runs of other clusters use the room for slow or large ones.
var errBusy = errors.New("other clusters that answer slowly or with large lists are compared first; this one follows")

// lanes keep workers and memory for the other clusters, whatever a slow or large one answers. Runs of such clusters use at
// most half of the workers, and few of them hold large lists at a time.
type lanes struct{ expensive, large *semaphore.Weighted }

func newLanes(workers int) *lanes {
	return &lanes{expensive: semaphore.NewWeighted(int64(max(1, workers/2))), large: semaphore.NewWeighted(largeRuns)}
}

// enterLanes takes the room that a run of a cluster needs. large reports whether the run may hold large lists. The error
// is errBusy if there is no room.
func (l *lanes) enterLanes(ctx context.Context, c *clusterConnection) (large bool, leave func(), err error) {
	c.mu.Lock()
	cheap, large := c.answered && !c.slow && !c.large, c.large
	c.mu.Unlock()
	if cheap {
		return false, func() {}, nil
	}
	if !l.expensive.TryAcquire(1) {
		return false, nil, fault.Unavailable(errBusy)
	}
	if !large {
		return false, func() { l.expensive.Release(1) }, nil
	}
	if !c.alone.TryLock() {
		l.expensive.Release(1)
		return false, nil, fault.Unavailable(errBusy)
	}
	ctx, cancel := context.WithTimeout(ctx, laneTimeout)
	defer cancel()
	if l.large.Acquire(ctx, 1) != nil { // It serves waiting runs in the order of their arrival.
		c.alone.Unlock()
		l.expensive.Release(1)
		return false, nil, fault.Unavailable(errBusy)
	}
	return true, func() { l.large.Release(1); c.alone.Unlock(); l.expensive.Release(1) }, nil
}

// recordRun records what a run of the cluster cost, for the lanes of the next ones.
func (c *clusterConnection) recordRun(took time.Duration, lists *search.Allowance, err error) {
	needsLarge := errors.Is(err, search.ErrLarge)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = c.answered || err == nil || needsLarge
	c.slow = took > slowAfter || c.silent != nil
	c.large = needsLarge || c.large && (err != nil || !lists.IsSmall())
}
