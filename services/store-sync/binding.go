package storesync

import (
	"context"
	"slices"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	apimodel "github.com/entail-dev/entail/services/store-sync/apimodule/plan"
)

// holdBinding keeps our finalizer on a kcp APIBinding while it lives, and lets it go when
// no AuthorizationModel is there for it alone. What is missing by then is nothing to wait for.
func (r *reconciler) holdBinding(ctx context.Context, key event.Key) ([]consume.Result, error) {
	b, ok := r.bindings.Get(key)
	if !ok || key.Cluster != r.cluster || b.Value.Ignored() && !slices.Contains(b.Value.Finalizers, corev1alpha1.BindingFinalizer) {
		return nil, nil
	}
	kind := kinds.Bindings()
	kind.Version = b.Version
	wanted := b.Value.Held() && b.Value.DeletionTimestamp == nil
	result := consume.Result{Change: b.Change, Outcome: eventv1.Outcome_OUTCOME_APPLIED}
	if held := slices.Contains(b.Value.Finalizers, corev1alpha1.BindingFinalizer); held == wanted {
		return []consume.Result{result}, nil
	}
	edit := r.kube.AddFinalizer
	if !wanted {
		edit = r.kube.RemoveFinalizer
		for _, store := range r.madeFor(b.Value) {
			g := r.generation(store)
			if err := r.deleteModules(ctx, g.made, apimodel.Make(g.Input).Delete); err != nil {
				return nil, err
			}
		}
	}
	is, err := edit(ctx, kind, b.Change, corev1alpha1.BindingFinalizer)
	if err != nil {
		return nil, err
	}
	result.Writes = 1
	return []consume.Result{result}, r.see(ctx, b.Change, is)
}
