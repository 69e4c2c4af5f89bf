package controller

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
	// patience is how long OpenFGA may give no answer before objects say so, and how long until those are
	// looked for that have changed since.
	patience = 3 * time.Second
	// outageStatuses is how many of them may, per second.
	outageStatuses = 20
	// abandoned is after how long without a call nobody asks for a key any more.
	abandoned = 2 * time.Minute
	// outageInterval is how often keys are looked at.
	outageInterval = 250 * time.Millisecond
)

// Outage is that OpenFGA gives no answer.
type Outage struct {
	Since time.Time
	Err   error
	pace  func(context.Context) error
}

// Pace waits until one more status may be written.
func (o Outage) Pace(ctx context.Context) error { return o.pace(ctx) }

// Message is for people.
func (o Outage) Message() string {
	message := fmt.Sprintf("OpenFGA has given no answer since %s, and is asked again", o.Since.UTC().Format(time.RFC3339))
	if o.Err != nil {
		message += ": " + o.Err.Error()
	}
	return message
}

// Outages has objects say that OpenFGA gives no answer: those whose own pass waits for one, and no others.
// A pass may hang for long, so they are told of beside it. That it is over is for the next pass to say.
type Outages[K comparable] struct {
	write func(ctx context.Context, key K, why Outage) error
	log   *slog.Logger
	pace  flowcontrol.RateLimiter

	mu    sync.Mutex
	lines map[K]*line
}

// line is that of the passes of one key.
type line struct {
	openFGA fga.Line
	// written is when the objects were made to say so.
	written time.Time
}

// NewOutages makes one. Write writes to those objects of a key that do not say so yet, again and again.
func NewOutages[K comparable](log *slog.Logger, write func(ctx context.Context, key K, why Outage) error) *Outages[K] {
	return &Outages[K]{write: write, log: log, pace: flowcontrol.NewTokenBucketRateLimiter(outageStatuses, 1), lines: map[K]*line{}}
}

// Watch makes a pass, and remembers how long OpenFGA has owed answers to the key.
func (o *Outages[K]) Watch(ctx context.Context, key K, pass func(ctx context.Context) error) error {
	o.mu.Lock()
	l := o.lines[key]
	if l == nil {
		l = &line{}
		o.lines[key] = l
	}
	o.mu.Unlock()
	err := pass(l.openFGA.On(ctx))
	if since, _, _ := l.openFGA.Silence(); since.IsZero() {
		o.forget(key)
	}
	return err
}

func (o *Outages[K]) forget(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.lines, key)
}

// Run writes until ctx ends.
func (o *Outages[K]) Run(ctx context.Context) error {
	ticker := time.NewTicker(outageInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for key, why := range o.due() {
			if err := o.write(ctx, key, why); err != nil {
				o.log.DebugContext(ctx, "outage not written", slog.Any("key", key), slog.Any("error", err))
				continue
			}
			o.wrote(key)
		}
	}
}

// due lists the keys that have waited long enough and have not said so.
func (o *Outages[K]) due() map[K]Outage {
	o.mu.Lock()
	defer o.mu.Unlock()
	due := map[K]Outage{}
	for key, l := range o.lines {
		since, last, err := l.openFGA.Silence()
		switch {
		case since.IsZero() || time.Since(since) < patience || time.Since(l.written) < patience:
		case time.Since(last) > abandoned:
			delete(o.lines, key)
		default:
			due[key] = Outage{since, err, o.pace.Wait}
		}
	}
	return due
}

func (o *Outages[K]) wrote(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.lines[key]; l != nil {
		l.written = time.Now()
	}
}
