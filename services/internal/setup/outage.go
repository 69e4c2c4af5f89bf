package setup

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/entail-dev/entail/services/internal/fga"
)

const (
	// outageGracePeriod bounds the time without an answer from OpenFGA before statuses report an outage. It is also the
	// time before the outage is written again, for objects that have changed since.
	outageGracePeriod = 3 * time.Second
	// maxOutageStatusesPerSecond bounds the statuses per second that are written because of an outage.
	maxOutageStatusesPerSecond = 20
	// trackingTimeout bounds the time since a key's last call. After this time the key is no longer tracked.
	trackingTimeout = 2 * time.Minute
	// outageInterval is the time between two checks of the keys.
	outageInterval = 250 * time.Millisecond
)

// Outage describes an outage of OpenFGA.
type Outage struct {
	Since            time.Time
	Err              error
	waitForRateLimit func(context.Context) error
}

// WaitForStatusRateLimit waits until the rate limit allows another status.
func (o Outage) WaitForStatusRateLimit(ctx context.Context) error { return o.waitForRateLimit(ctx) }

// Message describes the outage for the status of an object.
func (o Outage) Message() string {
	message := fmt.Sprintf("OpenFGA has not answered since %s; the service tries again", o.Since.UTC().Format(time.RFC3339))
	if o.Err != nil {
		message += ": " + o.Err.Error()
	}
	return message
}

// OutageReporter reports an outage of OpenFGA in the statuses of objects. It only writes to objects whose own
// reconciliation waits for OpenFGA. It writes concurrently with that reconciliation, which may wait for a long time.
// The next reconciliation removes the report.
type OutageReporter[K comparable] struct {
	write func(ctx context.Context, key K, why Outage) error
	log   *slog.Logger
	pace  flowcontrol.RateLimiter

	mu    sync.Mutex
	waits map[K]*outageWait
}

// outageWait holds, for one key, whether OpenFGA answers its calls.
type outageWait struct {
	openFGA fga.CallMonitor
	// written is the time at which the outage was last written.
	written time.Time
}

// NewOutageReporter returns a reporter. It calls write repeatedly for a key; write updates those objects of the key
// whose status does not report the outage yet.
func NewOutageReporter[K comparable](log *slog.Logger, writeStatus func(ctx context.Context, key K, why Outage) error) *OutageReporter[K] {
	pace := flowcontrol.NewTokenBucketRateLimiter(maxOutageStatusesPerSecond, 1)
	return &OutageReporter[K]{write: writeStatus, log: log, pace: pace, waits: map[K]*outageWait{}}
}

// RunReconcile runs a reconciliation and records how long OpenFGA has not answered its calls.
func (o *OutageReporter[K]) RunReconcile(ctx context.Context, key K, reconcile func(ctx context.Context) error) error {
	o.mu.Lock()
	l := o.waits[key]
	if l == nil {
		l = &outageWait{}
		o.waits[key] = l
	}
	o.mu.Unlock()
	err := reconcile(l.openFGA.ContextWithMonitor(ctx))
	if since, _, _ := l.openFGA.ResponseState(); since.IsZero() {
		o.forgetKey(key)
	}
	return err
}

func (o *OutageReporter[K]) forgetKey(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.waits, key)
}

// Run reports outages until ctx ends.
func (o *OutageReporter[K]) Run(ctx context.Context) error {
	ticker := time.NewTicker(outageInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for key, why := range o.dueOutages() {
			if err := o.write(ctx, key, why); err != nil {
				o.log.DebugContext(ctx, "outage not reported in the status", slog.Any("key", key), slog.Any("error", err))
				continue
			}
			o.recordStatusWrite(key)
		}
	}
}

// dueOutages lists the keys that have waited for at least outageGracePeriod and were not written within that time.
func (o *OutageReporter[K]) dueOutages() map[K]Outage {
	o.mu.Lock()
	defer o.mu.Unlock()
	due := map[K]Outage{}
	for key, l := range o.waits {
		since, last, err := l.openFGA.ResponseState()
		switch {
		case since.IsZero() || time.Since(since) < outageGracePeriod || time.Since(l.written) < outageGracePeriod:
		case time.Since(last) > trackingTimeout:
			delete(o.waits, key)
		default:
			due[key] = Outage{since, err, o.pace.Wait}
		}
	}
	return due
}

func (o *OutageReporter[K]) recordStatusWrite(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.waits[key]; l != nil {
		l.written = time.Now()
	}
}
