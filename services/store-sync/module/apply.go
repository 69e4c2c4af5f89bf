package module

import (
	"context"
	"log/slog"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Applier creates, changes and deletes the AuthorizationModels that carry modules.
type Applier struct {
	State *StoreListers
	Kube  *kube.Client
	Log   *slog.Logger
}

// GeneratedModels are the AuthorizationModels of this cluster that a provider generated for a Store.
type GeneratedModels struct {
	Models []*corev1alpha1.AuthorizationModel
	// Causes holds the objects that need a model, by the value of the annotation. Otherwise is the cause of all others.
	Causes    map[string]event.Change
	Otherwise event.Change

	annotation string
	made       map[string]event.Change
}

// GeneratedModelsOf returns the AuthorizationModels of this cluster that refer to a Store and have a value in the annotation.
// The value names the object for which they were generated.
func (s *StoreListers) GeneratedModelsOf(store event.Key, annotation string) *GeneratedModels {
	c := &GeneratedModels{Causes: map[string]event.Change{}, annotation: annotation, made: map[string]event.Change{}}
	for _, m := range s.ModelsOfStore(store) {
		if m.Value.Annotations[annotation] != "" && m.Key.Cluster == s.Cluster {
			c.Models, c.made[m.Key.Name] = append(c.Models, m.Value), m.Change
		}
	}
	return c
}

// sourceOfModel returns the object that needs an AuthorizationModel.
func (c *GeneratedModels) sourceOfModel(m *corev1alpha1.AuthorizationModel) event.Change {
	if cause, ok := c.Causes[m.Annotations[c.annotation]]; ok {
		return cause
	}
	return c.Otherwise
}

// ApplyPlan carries out a plan. An error for one AuthorizationModel does not stop the others.
func (a *Applier) ApplyPlan(ctx context.Context, p controller.UntypedRequest, has *GeneratedModels, todo plan.Plan) error {
	var errs []error
	for i := range todo.Apply {
		m := &todo.Apply[i]
		errs = append(errs, a.writeAuthorizationModel(ctx, p, m, has.made[m.Name], has.sourceOfModel(m)))
	}
	for _, name := range todo.Delete {
		err := a.Kube.Delete(ctx, kinds.AuthorizationModels(), has.made[name])
		if errs = append(errs, err); err == nil {
			a.Log.InfoContext(ctx, "generated AuthorizationModel deleted", slog.String("name", name))
		}
	}
	return fault.Join(errs...)
}

// modelApplyConfig holds the fields of an AuthorizationModel that this service owns. All other fields belong to others.
type modelApplyConfig struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec corev1alpha1.AuthorizationModelSpec `json:"spec"`
}

// writeAuthorizationModel creates an AuthorizationModel, or changes the existing one.
func (a *Applier) writeAuthorizationModel(ctx context.Context, p controller.UntypedRequest, m *corev1alpha1.AuthorizationModel, seen,
	cause event.Change,
) error {
	if seen.UID == "" {
		seen.Key = a.State.ModelKey(m.Name)
	}
	config := modelApplyConfig{Spec: m.Spec}
	config.Metadata.Annotations = m.Annotations
	now, err := a.Kube.Apply(ctx, kinds.AuthorizationModels(), seen, config)
	if err != nil {
		return err
	}
	a.Log.InfoContext(ctx, "AuthorizationModel generated", slog.String("name", m.Name), slog.String("store", m.Spec.StoreRef.Name),
		slog.String("cause", cause.Key.String()))
	return p.RecordWrite(ctx, cause, now)
}
