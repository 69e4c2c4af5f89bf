package setup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

// StatusUpdate is the result of a reconciliation for one object.
type StatusUpdate struct {
	Kind kinds.Kind
	// Object is the state of the object that the status describes. If the object has another state, the status is not
	// written.
	Object event.Change
	// Fields holds the status fields that this service owns. Same means that the object already has them.
	Fields    any
	Unchanged bool
	// Outcome and Message are published as a result. Notes become Events if the status is written.
	Outcome eventv1.Outcome
	Message string
	Events  []condition.EventContent
}

// StatusWriter writes statuses and Events.
type StatusWriter struct {
	kube StatusClient
	view *informer.Informer
	log  *slog.Logger
}

// StatusClient holds the methods of [kube.Client] that a StatusWriter uses.
type StatusClient interface {
	ApplyStatus(ctx context.Context, kind kinds.Kind, obj event.Change, status any) (event.Change, error)
	ReadNewest(ctx context.Context, kind kinds.Kind, obj event.Change) (event.Change, error)
	RecordEvent(ctx context.Context, obj event.Change, note condition.EventContent) error
}

// NewStatusWriter returns a StatusWriter.
func NewStatusWriter(api StatusClient, v *informer.Informer, log *slog.Logger) *StatusWriter {
	return &StatusWriter{kube: api, view: v, log: log}
}

// Write writes a status unless the object already has it, and reports the result. It returns the new state of the
// object. It does nothing for a deleted object. The error is [reconcile.ErrStale] if the object has changed.
func (w *StatusWriter) Write(ctx context.Context, p controller.UntypedRequest, s StatusUpdate) (event.Change, error) {
	now := s.Object
	if !s.Unchanged {
		var err error
		now, err = w.ApplyOwnFields(ctx, p, s.Kind, s.Object, s.Fields)
		if errors.Is(err, kube.ErrNotFound) {
			// The object was deleted. The change for the deletion will arrive.
			return s.Object, nil
		}
		if err != nil {
			return s.Object, err
		}
		w.RecordEvents(ctx, s.Object, s.Events...)
	}
	p.Report(s.Object, s.Outcome, s.Message)
	return now, nil
}

// ApplyOwnFields writes this service's fields of an object's status. The error is [reconcile.ErrStale] if the object
// has changed, and [kube.ErrNotFound] if it does not exist.
func (w *StatusWriter) ApplyOwnFields(ctx context.Context, p controller.UntypedRequest, kind kinds.Kind, obj event.Change, fields any) (event.Change, error) {
	now, err := w.kube.ApplyStatus(ctx, kind, obj, fields)
	switch {
	case errors.Is(err, kube.ErrConflict):
		return obj, w.RefreshAsStale(ctx, kind, obj)
	case err != nil:
		return obj, err
	}
	return now, p.RecordWrite(ctx, obj, now)
}

// RefreshAsStale stores the newest state of an object in the informer and returns [reconcile.ErrStale].
func (w *StatusWriter) RefreshAsStale(ctx context.Context, kind kinds.Kind, obj event.Change) error {
	now, err := w.kube.ReadNewest(ctx, kind, obj)
	if err != nil {
		return err
	}
	if err := w.view.ApplyAuthoritative(ctx, obj, now); err != nil {
		return fmt.Errorf("storing %s: %w", obj.Key, err)
	}
	return fmt.Errorf("%s: %w", obj.Key, reconcile.ErrStale)
}

// RecordEvents records Events about an object.
func (w *StatusWriter) RecordEvents(ctx context.Context, about event.Change, events ...condition.EventContent) {
	for _, n := range events {
		if err := w.kube.RecordEvent(ctx, about, n); err != nil {
			level := slog.LevelDebug
			// Only an administrator can end this: the service lacks the right to create Events.
			if errors.Is(err, kube.ErrForbidden) {
				level = slog.LevelWarn
			}
			w.log.Log(ctx, level, "event not recorded", slog.String("object", about.Key.String()), slog.Any("error", err))
		}
	}
}
