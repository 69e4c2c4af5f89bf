package storesync

import (
	"context"
	"errors"
	"log/slog"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// generated is what we say about an AuthorizationModel; everything else about it is for others to say.
type generated struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec corev1alpha1.AuthorizationModelSpec `json:"spec"`
}

// makeModule makes or changes an AuthorizationModel because of another object's change. was is
// its state so far, if there is one.
func (r *reconciler) makeModule(ctx context.Context, was, cause event.Change, m *corev1alpha1.AuthorizationModel) error {
	if was.UID == "" {
		was.Key = r.module(m.Name)
	}
	object := generated{Spec: m.Spec}
	object.Metadata.Annotations = m.Annotations
	is, err := r.kube.Apply(ctx, kinds.AuthorizationModels(), was, object)
	if err != nil {
		return err
	}
	r.log.InfoContext(ctx, "AuthorizationModel generated", slog.String("name", m.Name), slog.String("store", m.Spec.StoreRef.Name),
		slog.String("cause", cause.Key.String()))
	return r.see(ctx, cause, is)
}

// deleteModules deletes AuthorizationModels that were generated; made has their states.
func (r *reconciler) deleteModules(ctx context.Context, made map[string]event.Change, names []string) error {
	var errs []error
	for _, name := range names {
		if err := r.kube.Delete(ctx, kinds.AuthorizationModels(), made[name]); err != nil {
			errs = append(errs, err)
			continue
		}
		r.log.InfoContext(ctx, "generated AuthorizationModel deleted", slog.String("name", name))
	}
	return errors.Join(errs...)
}
