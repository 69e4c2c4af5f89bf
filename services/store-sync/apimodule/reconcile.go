// Package apimodule provides the modules of APIs. It generates AuthorizationModels for labelled
// CustomResourceDefinitions and for the APIs that kcp workspaces bind. It gives the modules of the API server's own
// resources to the merge directly, without AuthorizationModels.
package apimodule

import (
	"context"
	"errors"
	"slices"
	"strings"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/apimodule/discovery"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
)

// Provider provides the modules of APIs. Create it with [New].
type Provider struct {
	state     *state
	discovery *discovery.Discovery
	applier   *module.Applier
}

var _ module.Provider = (*Provider)(nil)

// New returns a provider that reads the informer.
func New(v *informer.Informer, cfg discovery.Config, applier *module.Applier) *Provider {
	s := newState(v, applier.State)
	p := &Provider{state: s, discovery: discovery.New(cfg, applier.Kube, s), applier: applier}
	v.OnReload(p.discovery.Invalidate)
	v.OnChange(p.invalidateDiscovery)
	return p
}

// invalidateDiscovery marks the discovered resources as outdated if a definition changed. It runs on every change of
// the informer, before the change is reconciled.
func (p *Provider) invalidateDiscovery(object event.Key) {
	if object.GroupResource == kinds.CustomResourceDefinitions().GroupResource && p.isInDiscoveredGroup(object) {
		p.discovery.Invalidate()
	}
}

// AffectedKeys lists the Stores that an object of an API affects. An APIBinding is also a key itself.
func (p *Provider) AffectedKeys(k event.Key) []event.Key {
	s := p.state
	switch k.GroupResource {
	case kinds.CustomResourceDefinitions().GroupResource:
		return append(s.storesNamedByLabel(k), p.storesUsingDiscovery(k)...)
	case kinds.APIBindings().GroupResource:
		if b, _ := s.bindings.GetOrTombstone(k); b.Value == nil {
			return []event.Key{k}
		}
		return append([]event.Key{k}, s.storesOfWorkspace(k.Cluster)...)
	case kinds.AccountInfos().GroupResource:
		if i, _ := s.accounts.GetOrTombstone(k); i.Value != nil && k.Name == corev1alpha1.AccountInfoName {
			return []event.Key{s.organizationStoreKey(i.Value)}
		}
	case kinds.APIExports().GroupResource:
		return s.storesBindingExport(k.Cluster, k.Name)
	case kinds.APIResourceSchemas().GroupResource:
		var keys []event.Key
		for _, e := range s.exports.ListByIndex(bySchema, k.Name) {
			if e.Key.Cluster == k.Cluster {
				keys = append(keys, s.storesBindingExport(k.Cluster, e.Key.Name)...)
			}
		}
		return keys
	}
	return nil
}

// storesUsingDiscovery lists the Stores whose models contain all resources in the group of a definition.
func (p *Provider) storesUsingDiscovery(definition event.Key) []event.Key {
	var keys []event.Key
	if p.isInDiscoveredGroup(definition) {
		for _, s := range p.state.shared.Stores.All() {
			if s.Key.Cluster == p.state.shared.Cluster && plan.UsesDiscovery(s.Value) {
				keys = append(keys, s.Key)
			}
		}
	}
	return keys
}

// isInDiscoveredGroup reports whether discovery covers the group of a definition in this cluster. The name of a definition is
// <plural>.<group>.
func (p *Provider) isInDiscoveredGroup(definition event.Key) bool {
	_, group, _ := strings.Cut(definition.Name, ".")
	return definition.Cluster == p.state.shared.Cluster && p.discovery.IsConfiguredGroup(group)
}

// SyncModels applies and deletes the AuthorizationModels of APIs in a Store, once the API server's resources have been
// discovered. It applies none if the Store is deleted or in deletion, because that would undo the deletion of its
// AuthorizationModels.
func (p *Provider) SyncModels(ctx context.Context, r controller.UntypedRequest, store event.Key) ([]module.StatusTarget, error) {
	discoverErr := p.refreshDiscovery(ctx, store)
	if _, ready := p.DirectModules(store); !ready {
		return nil, discoverErr
	}
	found := p.state.collectSnapshot(store, p.moduleTemplate())
	todo := plan.DecideModels(found.input)
	if s, live := p.state.shared.Stores.GetOrTombstone(store); live && s.Value.DeletionTimestamp != nil || !live && s.UID != "" {
		todo.Apply = nil
	}
	err := p.applier.ApplyPlan(ctx, r, found.carriers, todo.Plan)
	for _, d := range found.definitions {
		outcome, message := eventv1.Outcome_OUTCOME_APPLIED, ""
		for unnamed, why := range todo.Unnamed {
			if found.carriers.Causes[unnamed.String()].Key == d.Key {
				outcome, message = eventv1.Outcome_OUTCOME_REJECTED, why
			}
		}
		r.Report(d, outcome, message)
	}
	return nil, errors.Join(discoverErr, err)
}

// refreshDiscovery refreshes the resources of the API server if the Store uses them. If that fails, the resources found before
// stay in use.
func (p *Provider) refreshDiscovery(ctx context.Context, store event.Key) error {
	if s, ok := p.storeUsingDiscovery(store); ok && s.Value.DeletionTimestamp == nil {
		return p.discovery.Refresh(ctx)
	}
	return nil
}

// DirectModules returns the modules of the API server's own resources, if the Store is in this cluster and uses them.
func (p *Provider) DirectModules(store event.Key) (modules []model.Module, ready bool) {
	s, ok := p.storeUsingDiscovery(store)
	if !ok {
		return nil, true
	}
	modules, ready = p.discovery.DiscoveredModules()
	return p.markModulesWithGeneratedModel(store, modules), ready || s.Value.DeletionTimestamp != nil
}

// markModulesWithGeneratedModel returns the modules, and sets Yields on those of resources for which the Store gets AuthorizationModels. The
// annotation of an AuthorizationModel does not prove that, because any author can write it.
func (p *Provider) markModulesWithGeneratedModel(store event.Key, modules []model.Module) []model.Module {
	offered, wanted := map[string]bool{}, map[string]bool{}
	for _, m := range modules {
		offered[m.API] = true
	}
	made := p.state.shared.ModelsOfStore(store)
	if !slices.ContainsFunc(made, func(m module.ModelObject) bool { return offered[m.Value.Annotations[corev1alpha1.ResourceAnnotation]] }) {
		return modules
	}
	for _, w := range p.state.collectSnapshot(store, p.moduleTemplate()).input.Wanted {
		wanted[w.Resource.String()] = true
	}
	marked := slices.Clone(modules)
	for i := range marked {
		marked[i].Yields = wanted[marked[i].API]
	}
	return marked
}

// storeUsingDiscovery returns a Store of this cluster whose model contains the API server's own resources.
func (p *Provider) storeUsingDiscovery(store event.Key) (module.StoreObject, bool) {
	s, ok := p.state.shared.Stores.Get(store)
	return s, ok && store.Cluster == p.state.shared.Cluster && plan.UsesDiscovery(s.Value)
}

// moduleTemplate returns the template for modules of APIs.
func (p *Provider) moduleTemplate() plan.ModuleTemplate {
	return plan.ModuleTemplate{AccountType: p.discovery.AccountType()}
}
