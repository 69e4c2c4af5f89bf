package reflector

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
)

// maxForgeries within forgeryWindow halt all services.
const (
	maxForgeries  = 3
	forgeryWindow = time.Minute
)

// ServiceHalt keeps all services from granting.
type ServiceHalt interface {
	// Reason returns why services are halted, or an empty string.
	Reason() string
	Begin(reason string)
	// StampBarrier sets the fields of a barrier by which services halt or resume.
	StampBarrier(b *eventv1.Barrier)
	// AdoptFromBarrier begins the halt that a barrier of an earlier term announces, if nothing shows that it was resumed.
	AdoptFromBarrier(b *eventv1.Barrier)
}

// forgeryCounter holds the times of the last forgeries.
type forgeryCounter struct {
	mu    sync.Mutex
	times []time.Time
}

// addForgery records a forgery, and reports whether there were too many.
func (f *forgeryCounter) addForgery(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times = slices.DeleteFunc(append(f.times, now), func(at time.Time) bool { return now.Sub(at) >= forgeryWindow })
	if len(f.times) < maxForgeries {
		return false
	}
	f.times = nil
	return true
}

// reportForgery reports a forged message about an object with an Event. counts means that it counts towards a halt:
// other contents and refused messages from before a term may stem from an earlier release.
func (r *reflector) reportForgery(ctx context.Context, is event.Change, cause string, counts bool) {
	note := condition.EventContent{Warning: true, Reason: "ForgedChange", Message: fmt.Sprintf(
		"A message on the bus contradicted the API server (%s) and was replaced: the watcher's NATS account may be stolen.", cause)}
	if err := r.cfg.Event(ctx, is, note); err != nil {
		r.cfg.Log.WarnContext(ctx, "no Event about a forged message", "key", is.Key.String(), "error", err)
	}
	if counts {
		r.countForgeryTowardHalt("about " + is.Key.String())
	}
}

// countForgeryTowardHalt counts a forgery, and halts all services after too many. what describes the last one.
func (r *reflector) countForgeryTowardHalt(what string) {
	if r.forgeries.addForgery(time.Now()) {
		r.cfg.Halt.Begin(fmt.Sprintf("%d messages were forged within %s, the last %s; replace the NATS keys, then run: entail bus resume",
			maxForgeries, forgeryWindow, what))
	}
}
