package module

import (
	"context"
	"log/slog"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Applier creates, changes and deletes the AuthorizationModels that carry modules.
type Applier struct {
	State     *State
	Kube      *kube.Client
	Confirmer *confirm.Confirmer
	Log       *slog.Logger
}

// Carriers are the AuthorizationModels of this cluster that a provider generated for a Store.
type Carriers struct {
	Models []*corev1alpha1.AuthorizationModel
	// Causes holds the objects that need a model, by the value of the annotation. Otherwise is the cause of all others.
	Causes    map[string]event.Change
	Otherwise event.Change
	// Statements cover everything from which the plan is made. The plan runs only once they are confirmed.
	Statements []confirm.Statement

	annotation string
	made       map[string]event.Change
}

// CarriersOf returns the AuthorizationModels of this cluster that refer to a Store and have a value in the annotation.
// The value names the object for which they were generated.
func (s *State) CarriersOf(store event.Key, annotation string) *Carriers {
	c := &Carriers{Causes: map[string]event.Change{}, annotation: annotation, made: map[string]event.Change{}}
	for _, m := range s.ModelsOf(store) {
		if m.Value.Annotations[annotation] != "" && m.Key.Cluster == s.Cluster {
			c.Models, c.made[m.Key.Name] = append(c.Models, m.Value), m.Change
			c.Statements = append(c.Statements, ModelStatement(m))
		}
	}
	return c
}

// causeOf returns the object that needs an AuthorizationModel.
func (c *Carriers) causeOf(m *corev1alpha1.AuthorizationModel) event.Change {
	if cause, ok := c.Causes[m.Annotations[c.annotation]]; ok {
		return cause
	}
	return c.Otherwise
}

// Apply carries out a plan. An error for one AuthorizationModel does not stop the others.
func (a *Applier) Apply(ctx context.Context, p controller.Reporter, has *Carriers, todo plan.Plan) error {
	if err := a.confirmPlan(ctx, has, todo); err != nil {
		return err
	}
	var errs []error
	for i := range todo.Apply {
		m := &todo.Apply[i]
		errs = append(errs, a.writeModule(ctx, p, m, has.made[m.Name], has.causeOf(m)))
	}
	for _, name := range todo.Delete {
		err := a.Kube.Delete(ctx, kinds.AuthorizationModels(), has.made[name])
		if errs = append(errs, err); err == nil {
			a.Log.InfoContext(ctx, "generated AuthorizationModel deleted", slog.String("name", name))
		}
	}
	return fault.Join(errs...)
}

// confirmPlan compares the basis of a plan with the API server. It also confirms that an object to create again was really
// deleted.
func (a *Applier) confirmPlan(ctx context.Context, has *Carriers, todo plan.Plan) error {
	if len(todo.Apply)+len(todo.Delete) == 0 {
		return nil
	}
	statements := slices.Clone(has.Statements)
	for _, m := range todo.Apply {
		if o, lives := a.State.Models.Last(a.State.ModelKey(m.Name)); !lives && o.UID != "" {
			statements = append(statements, ModelStatement(o))
		}
	}
	return a.Confirmer.Confirm(ctx, statements...)
}

// applyConfig holds the fields of an AuthorizationModel that this service owns. All other fields belong to others.
type applyConfig struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec corev1alpha1.AuthorizationModelSpec `json:"spec"`
}

// writeModule creates an AuthorizationModel, or changes the existing one.
func (a *Applier) writeModule(ctx context.Context, p controller.Reporter, m *corev1alpha1.AuthorizationModel, seen, cause event.Change) error {
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
	if _, err := a.Confirmer.Hear(ModelStatement(Model{Change: now}), now); err != nil {
		return err
	}
	return p.RecordWrite(ctx, cause, now)
}
