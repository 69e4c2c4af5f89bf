package module

import (
	"context"
	"errors"
	"log/slog"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Applier makes and deletes the AuthorizationModels that carry modules.
type Applier struct {
	State *State
	Kube  *kube.Client
	Log   *slog.Logger
}

// Carriers are the AuthorizationModels that a provider has made in one Store.
type Carriers struct {
	// Made are their present states, by name.
	Made map[string]event.Change
	// Cause is the object that asks for one.
	Cause func(*corev1alpha1.AuthorizationModel) event.Change
}

// Apply carries out a plan. One AuthorizationModel that cannot be made holds up no other.
func (a *Applier) Apply(ctx context.Context, p consume.Reporter, has Carriers, todo plan.Plan) error {
	var errs []error
	for i := range todo.Apply {
		m := &todo.Apply[i]
		errs = append(errs, a.make(ctx, p, m, has.Made[m.Name], has.Cause(m)))
	}
	for _, name := range todo.Delete {
		err := a.Kube.Delete(ctx, kinds.AuthorizationModels(), has.Made[name])
		if errs = append(errs, err); err == nil {
			a.Log.InfoContext(ctx, "generated AuthorizationModel deleted", slog.String("name", name))
		}
	}
	return errors.Join(errs...)
}

// applyConfig is what is ours of an AuthorizationModel; everything else about it is for others to set.
type applyConfig struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec corev1alpha1.AuthorizationModelSpec `json:"spec"`
}

// make makes an AuthorizationModel, or changes the one that was seen.
func (a *Applier) make(ctx context.Context, p consume.Reporter, m *corev1alpha1.AuthorizationModel, seen, cause event.Change) error {
	if seen.UID == "" {
		seen.Key = a.State.ModelKey(m.Name)
	}
	config := applyConfig{Spec: m.Spec}
	config.Metadata.Annotations = m.Annotations
	now, err := a.Kube.Apply(ctx, kinds.AuthorizationModels(), seen, config)
	if err != nil {
		return err
	}
	a.Log.InfoContext(ctx, "AuthorizationModel generated", slog.String("name", m.Name), slog.String("store", m.Spec.StoreRef.Name),
		slog.String("cause", cause.Key.String()))
	return p.Wrote(ctx, cause, now)
}
