package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/view"
)

// Status is what a pass has to say about one object.
type Status struct {
	Kind kinds.Kind
	// Object is the very state that the status is about: written to another, it would claim
	// to have seen what it has not.
	Object event.Change
	// Fields are ours and no others. Same means that the object has them.
	Fields any
	Same   bool
	// Outcome and Message go to the bus, Notes to Kubernetes' Events when Fields are new.
	Outcome eventv1.Outcome
	Message string
	Notes   []condition.Note
}

// StatusWriter writes statuses and tells people of them.
type StatusWriter struct {
	kube Objects
	view *view.View
	log  *slog.Logger
}

// Objects is what is needed of the API server.
type Objects interface {
	ApplyStatus(ctx context.Context, kind kinds.Kind, obj event.Change, status any) (event.Change, error)
	Newest(ctx context.Context, kind kinds.Kind, obj event.Change) (event.Change, error)
	Event(ctx context.Context, obj event.Change, note condition.Note) error
}

// NewStatusWriter makes one.
func NewStatusWriter(api Objects, v *view.View, log *slog.Logger) *StatusWriter {
	return &StatusWriter{kube: api, view: v, log: log}
}

// Write writes a status, unless the object has it, and reports. It returns the object's new
// state. Of an object that vanished there is nothing to say. When the object has changed, the
// error is [reconcile.ErrStale].
func (w *StatusWriter) Write(ctx context.Context, p consume.Reporter, s Status) (event.Change, error) {
	now := s.Object
	if !s.Same {
		var err error
		now, err = w.Apply(ctx, p, s.Kind, s.Object, s.Fields)
		if errors.Is(err, kube.ErrNotFound) {
			return s.Object, nil // The event that says so is on its way.
		}
		if err != nil {
			return s.Object, err
		}
		w.Note(ctx, s.Object, s.Notes...)
	}
	p.Report(s.Object, s.Outcome, s.Message)
	return now, nil
}

// Apply writes our fields of an object's status, and nothing else. It is [reconcile.ErrStale]
// when the object has changed, and [kube.ErrNotFound] when it is gone.
func (w *StatusWriter) Apply(ctx context.Context, p consume.Reporter, kind kinds.Kind, obj event.Change, fields any) (event.Change, error) {
	now, err := w.kube.ApplyStatus(ctx, kind, obj, fields)
	switch {
	case errors.Is(err, kube.ErrConflict):
		return obj, w.Refresh(ctx, kind, obj)
	case err != nil:
		return obj, err
	}
	return now, p.Wrote(ctx, obj, now)
}

// Refresh takes the newest state of an object into the view, because the view's is not, and
// is [reconcile.ErrStale].
func (w *StatusWriter) Refresh(ctx context.Context, kind kinds.Kind, obj event.Change) error {
	now, err := w.kube.Newest(ctx, kind, obj)
	if err != nil {
		return err
	}
	if err := w.view.Correct(ctx, obj, now); err != nil {
		return fmt.Errorf("taking in %s: %w", obj.Key, err)
	}
	return fmt.Errorf("%s: %w", obj.Key, reconcile.ErrStale)
}

// Note attaches Events to an object.
func (w *StatusWriter) Note(ctx context.Context, about event.Change, notes ...condition.Note) {
	for _, n := range notes {
		if err := w.kube.Event(ctx, about, n); err != nil {
			level := slog.LevelDebug
			if errors.Is(err, kube.ErrForbidden) { // Somebody must give the right, or people are told of nothing.
				level = slog.LevelWarn
			}
			w.log.Log(ctx, level, "event not recorded", slog.String("object", about.Key.String()), slog.Any("error", err))
		}
	}
}
