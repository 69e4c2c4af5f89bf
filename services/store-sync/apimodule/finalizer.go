package apimodule

import (
	"context"
	"slices"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
	"github.com/entail-dev/entail/services/store-sync/module"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// SyncAPIBindingFinalizer keeps the finalizer on a kcp APIBinding while the binding lives. It removes the finalizer of a deleted binding
// after it has deleted the AuthorizationModels that only this binding needed. It waits for nothing else.
func (p *Provider) SyncAPIBindingFinalizer(ctx context.Context, r controller.UntypedRequest, binding event.Key) error {
	b, ok := p.state.bindings.Get(binding)
	if !ok || binding.Cluster != p.state.shared.Cluster || b.Value.IsPlatformBinding() && !slices.Contains(b.Value.Finalizers, corev1alpha1.BindingFinalizer) {
		return nil
	}
	wanted := b.Value.NeedsFinalizer() && b.Value.DeletionTimestamp == nil
	if held := slices.Contains(b.Value.Finalizers, corev1alpha1.BindingFinalizer); held != wanted {
		if err := p.setAPIBindingFinalizer(ctx, r, b, wanted); err != nil {
			return err
		}
	}
	r.Report(b.Change, eventv1.Outcome_OUTCOME_APPLIED, "")
	return nil
}

func (p *Provider) setAPIBindingFinalizer(ctx context.Context, r controller.UntypedRequest, b informer.Object[plan.APIBinding], wanted bool) error {
	kind, edit := kinds.APIBindings(), p.applier.Kube.AddFinalizer
	kind.Version = b.Version
	if !wanted {
		edit = p.applier.Kube.RemoveFinalizer
		if err := p.deleteUnneededBindingModels(ctx, r, b.Value); err != nil {
			return err
		}
	}
	now, err := edit(ctx, kind, b.Change, corev1alpha1.BindingFinalizer)
	if err != nil {
		return err
	}
	return r.RecordWrite(ctx, b.Change, now)
}

// deleteUnneededBindingModels deletes the AuthorizationModels that were generated for a binding and that nothing needs any more.
func (p *Provider) deleteUnneededBindingModels(ctx context.Context, r controller.UntypedRequest, b *plan.APIBinding) error {
	stores := map[event.Key]bool{}
	for _, m := range p.state.shared.ModelsGeneratedFor(b.Status.ExportCluster + "/" + b.ExportName()) {
		stores[module.ReferencedStoreKey(m)] = true
	}
	for store := range stores {
		found := p.state.collectSnapshot(store, p.moduleTemplate())
		if err := p.applier.ApplyPlan(ctx, r, found.carriers, moduleplan.Plan{Delete: plan.DecideModels(found.input).Delete}); err != nil {
			return err
		}
	}
	return nil
}
