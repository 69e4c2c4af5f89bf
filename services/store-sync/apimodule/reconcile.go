// Package apimodule gives models the modules of APIs: AuthorizationModels for labelled
// CustomResourceDefinitions and for what kcp workspaces bind, and, as they are, the modules of the
// resources that the API server itself serves.
package apimodule

import (
	"context"
	"errors"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/store-sync/apimodule/discovery"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
)

// Provider gives the modules of APIs. Make one with [New].
type Provider struct {
	state     *state
	discovery *discovery.Discovery
	applier   *module.Applier
	kube      *kube.Client
}

var _ module.Provider = (*Provider)(nil)

// New makes one that reads the view.
func New(v *view.View, cfg discovery.Config, applier *module.Applier) *Provider {
	s := newState(v, applier.State)
	p := &Provider{state: s, discovery: discovery.New(cfg, applier.Kube, s), applier: applier, kube: applier.Kube}
	v.OnReload(p.discovery.Invalidate)
	v.OnChange(p.invalidate)
	return p
}

// invalidate follows every change, before its reconciliation.
func (p *Provider) invalidate(object event.Key) {
	if object.GroupResource == kinds.Definitions().GroupResource && p.concerns(object) {
		p.discovery.Invalidate()
	}
}

// Sync makes the AuthorizationModels of APIs in a Store be as they should be, once the resources
// of the API server are known. A Store in deletion gets no more.
func (p *Provider) Sync(ctx context.Context, r consume.Reporter, store event.Key) ([]module.Member, error) {
	discoverErr := p.discover(ctx, store)
	if _, ready := p.Modules(store); !ready {
		return nil, discoverErr
	}
	found := p.state.snapshot(store, p.template())
	todo := plan.Make(found.input)
	if s, ok := p.state.shared.Stores.Get(store); ok && s.Value.DeletionTimestamp != nil {
		todo.Apply = nil
	}
	err := p.applier.Apply(ctx, r, found.carriers(), todo.Plan)
	for _, d := range found.definitions {
		outcome, message := eventv1.Outcome_OUTCOME_APPLIED, ""
		for unnamed, why := range todo.Unnamed {
			if found.causes[unnamed.String()].Key == d.Key {
				outcome, message = eventv1.Outcome_OUTCOME_REJECTED, why
			}
		}
		r.Report(d, outcome, message)
	}
	return nil, errors.Join(discoverErr, err)
}

// discover asks the API server where a Store wants its resources. What was known before does for now.
func (p *Provider) discover(ctx context.Context, store event.Key) error {
	if s, ok := p.discoverer(store); ok && s.Value.DeletionTimestamp == nil {
		return p.discovery.Refresh(ctx)
	}
	return nil
}

// Modules are those of the API server's own resources, for a Store here that wants them.
func (p *Provider) Modules(store event.Key) ([]model.Module, bool) {
	s, ok := p.discoverer(store)
	if !ok {
		return nil, true
	}
	modules, ready := p.discovery.Modules()
	return modules, ready || s.Value.DeletionTimestamp != nil
}

// discoverer finds a Store here whose model knows the API server's own resources.
func (p *Provider) discoverer(store event.Key) (module.Store, bool) {
	s, ok := p.state.shared.Stores.Get(store)
	return s, ok && store.Cluster == p.state.shared.Cluster && plan.Discovers(s.Value)
}

// template is what modules for APIs look like.
func (p *Provider) template() plan.Template {
	return plan.Template{AccountType: p.discovery.AccountType()}
}
