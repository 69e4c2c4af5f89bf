package storesync

import (
	"context"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/view"
)

// reporter collects what a pass did.
type reporter struct {
	view    *view.View
	results []consume.Result
	writes  map[event.Key]int
}

// Wrote implements module.Reporter. The state came of the one before: so it answers the same
// observation, in the same trace.
func (r *reporter) Wrote(ctx context.Context, cause, now event.Change) error {
	if now.ResourceVersion != cause.ResourceVersion {
		r.Count(cause)
	}
	now.ObservedAt, now.Traceparent = cause.ObservedAt, cause.Traceparent
	return r.view.Apply(ctx, now)
}

// Count implements module.Reporter.
func (r *reporter) Count(cause event.Change) { r.writes[cause.Key]++ }

// Report implements module.Reporter.
func (r *reporter) Report(c event.Change, outcome eventv1.Outcome, message string) {
	r.results = append(r.results, consume.Result{Change: c, Outcome: outcome, Message: message, Writes: r.writes[c.Key]})
}
