package module

import (
	"context"
	"log/slog"
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Applier makes and deletes the AuthorizationModels that carry modules.
type Applier struct {
	State     *State
	Kube      *kube.Client
	Confirmer *confirm.Confirmer
	Log       *slog.Logger
}

// Carriers are the AuthorizationModels here that a provider made for a Store.
type Carriers struct {
	Models []*corev1alpha1.AuthorizationModel
	// Causes are the objects that ask for one, by what an annotation says that it is for; Otherwise is there for all others.
	Causes    map[string]event.Change
	Otherwise event.Change
	// Statements are of all that a plan is made from: it is carried out once they are confirmed.
	Statements []confirm.Statement

	annotation string
	made       map[string]event.Change
}

// CarriersOf finds those that have an annotation which says what they are for.
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

// cause is the object that asks for an AuthorizationModel.
func (c *Carriers) cause(m *corev1alpha1.AuthorizationModel) event.Change {
	if cause, ok := c.Causes[m.Annotations[c.annotation]]; ok {
		return cause
	}
	return c.Otherwise
}

// Apply carries out a plan. One AuthorizationModel that cannot be made holds up no other.
func (a *Applier) Apply(ctx context.Context, p consume.Reporter, has *Carriers, todo plan.Plan) error {
	if err := a.confirm(ctx, has, todo); err != nil {
		return err
	}
	var errs []error
	for i := range todo.Apply {
		m := &todo.Apply[i]
		errs = append(errs, a.make(ctx, p, m, has.made[m.Name], has.cause(m)))
	}
	for _, name := range todo.Delete {
		err := a.Kube.Delete(ctx, kinds.AuthorizationModels(), has.made[name])
		if errs = append(errs, err); err == nil {
			a.Log.InfoContext(ctx, "generated AuthorizationModel deleted", slog.String("name", name))
		}
	}
	return fault.Join(errs...)
}

// confirm asks the API server about what a plan was made from. It has what was never deleted, or refuses to make it.
func (a *Applier) confirm(ctx context.Context, has *Carriers, todo plan.Plan) error {
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
	if _, err := a.Confirmer.Hear(ModelStatement(Model{Change: now}), now); err != nil {
		return err
	}
	return p.Wrote(ctx, cause, now)
}
