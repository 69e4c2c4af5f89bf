// Package iammodule provides the types of the IAM store's model: one for each kind that a ProtectedResource registers,
// and those that grant roles. They follow from objects and not from a text, so no AuthorizationModel carries them.
package iammodule

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/store-sync/iammodule/plan"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Provider provides the types of ProtectedResources. Create it with [New].
type Provider struct {
	state   *state
	applier *module.Applier
}

var _ module.Provider = (*Provider)(nil)

// New returns a provider for the IAM store with this name. It reads the informer.
func New(v *informer.Informer, store string, applier *module.Applier) *Provider {
	return &Provider{state: newState(v, module.StoreKey(store, applier.State.Cluster)), applier: applier}
}

// AffectedKeys returns the IAM store for every ProtectedResource of this cluster.
func (p *Provider) AffectedKeys(k event.Key) []event.Key {
	if k.GroupResource != kinds.ProtectedResources().GroupResource || k.Cluster != p.state.store.Cluster {
		return nil
	}
	return []event.Key{p.state.store}
}

// SyncModels creates the IAM store if a ProtectedResource exists and the Store does not. No AuthorizationModel carries the
// types.
func (p *Provider) SyncModels(ctx context.Context, r controller.UntypedRequest, store event.Key) ([]module.StatusTarget, error) {
	if store != p.state.store {
		return nil, nil
	}
	errs := []error{p.removeLegacyFinalizers(ctx, r)}
	found := p.state.undeletedResources()
	if len(found) > 0 {
		errs = append(errs, p.ensureIAMStore(ctx, r, found[0]))
	}
	return statusTargetsOf(found), errors.Join(errs...)
}

// WaitingResources returns the ProtectedResources whose condition Ready does not cover their current generation.
func (p *Provider) WaitingResources(store event.Key) (waiting []module.StatusTarget) {
	if store != p.state.store {
		return nil
	}
	found := p.state.undeletedResources()
	for i, m := range statusTargetsOf(found) {
		ready := meta.FindStatusCondition(found[i].Value.Status.Conditions, iamv1alpha1.Ready)
		if ready == nil || ready.ObservedGeneration != found[i].Generation {
			waiting = append(waiting, m)
		}
	}
	return waiting
}

func statusTargetsOf(found []protectedResource) (targets []module.StatusTarget) {
	var all iamTypesBuilder
	for _, o := range found {
		all = append(all, o.Value)
	}
	judge := cachedRegistryFunc(all)
	for _, o := range found {
		targets = append(targets, module.StatusTarget{
			Change: o.Change, Kind: kinds.ProtectedResources(), Expected: expectedResource(o), Carrier: o.Key,
			Status: func(v moduleplan.Verdict) moduleplan.ObjectStatus {
				return plan.DesiredStatus(o.Value, judge(v.Room).FindingFor(o.Key.Name), v)
			},
		})
	}
	return targets
}

// cachedRegistryFunc returns a function that registers ProtectedResources within the room of the model. It caches the last
// registry, because the room is the same for one pass. A zero room means that the room is unknown.
func cachedRegistryFunc(all iamTypesBuilder) func(model.Limits) *iam.Registry {
	var last model.Limits
	var registry *iam.Registry
	return func(room model.Limits) *iam.Registry {
		switch {
		case registry != nil && room == last:
		case room == (model.Limits{}):
			registry = iam.NewRegistry(all)
		default:
			registry = iam.RegistryWithinBudget(all, iam.ModelBudget{Types: room.Types, Bytes: room.Bytes})
		}
		last = room
		return registry
	}
}

// ensureIAMStore creates the IAM store if it does not exist.
func (p *Provider) ensureIAMStore(ctx context.Context, r controller.UntypedRequest, cause protectedResource) error {
	if _, there := p.applier.State.Stores.Get(p.state.store); there {
		return nil
	}
	cluster, err := p.applier.Kube.ClusterUID(ctx)
	if err != nil {
		return err
	}
	now, err := p.applier.Kube.Apply(ctx, kinds.Stores(), event.Change{Key: p.state.store},
		map[string]any{"spec": plan.IAMStoreSpec(p.state.store.Name, cluster)})
	if err != nil {
		return err
	}
	p.applier.Log.InfoContext(ctx, "IAM store created")
	return r.RecordWrite(ctx, cause.Change, now)
}

// removeLegacyFinalizers removes the finalizers that other software left. Nothing else would remove them.
func (p *Provider) removeLegacyFinalizers(ctx context.Context, r controller.UntypedRequest) error {
	var errs []error
	for _, o := range p.state.resources.All() {
		if o.Key.Cluster != p.state.store.Cluster || !slices.Contains(o.Value.Finalizers, iamv1alpha1.ProtectedResourceFinalizer) {
			continue
		}
		now, err := p.applier.Kube.RemoveFinalizer(ctx, kinds.ProtectedResources(), o.Change, iamv1alpha1.ProtectedResourceFinalizer)
		if err == nil {
			err = r.RecordWrite(ctx, o.Change, now)
		}
		errs = append(errs, err)
	}
	return fault.Join(errs...)
}

// ListMissingResources lists the ProtectedResources at the API server. It returns the state in the informer of those
// that are alive there and that the IAM store's model leaves out.
func (p *Provider) ListMissingResources(ctx context.Context, store event.Key) (out []verify.ExpectedState, err error) {
	if store != p.state.store {
		return nil, nil
	}
	known := map[string]bool{}
	for _, o := range p.state.undeletedResources() {
		known[o.Key.Name] = true
	}
	err = event.DecodeEach(p.applier.Kube.List(ctx, kinds.ProtectedResources(), ""), func(r *iamv1alpha1.ProtectedResource) {
		if !known[r.Name] && r.DeletionTimestamp == nil {
			out = append(out, expectedResource(p.state.resourceOrTombstone(r.Name)))
		}
	})
	if errors.Is(err, kube.ErrNotServed) {
		return nil, nil
	}
	return out, err
}

// DirectModules returns the module with the types. Without a ProtectedResource it holds no type, and still reserves the names
// that such types would have.
func (p *Provider) DirectModules(store event.Key) (modules []model.Module, ready bool) {
	if store != p.state.store {
		return nil, true
	}
	var all iamTypesBuilder
	for _, o := range p.state.undeletedResources() {
		all = append(all, modelRelevantFields(o.Value))
	}
	m := model.Module{Origin: model.ModuleOrigin{Kind: model.IAM}, Types: model.PendingTypes{}}
	if len(all) > 0 {
		m.Types = all
	}
	return []model.Module{m}, true
}
