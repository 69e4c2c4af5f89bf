// Package policymodule gives models the modules of PolicyDocuments: all of a Store's are one
// policy, and what of it is valid becomes AuthorizationModels.
package policymodule

import (
	"context"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
	"github.com/entail-dev/entail/services/store-sync/policymodule/plan"
)

// Provider gives the modules of PolicyDocuments. Make one with [New].
type Provider struct {
	state   *state
	applier *module.Applier
	plans   *module.Cache[plan.Input, plan.Plan]
}

var _ module.Provider = (*Provider)(nil)

// New makes one that reads the view.
func New(v *view.View, applier *module.Applier) *Provider {
	made := func(in plan.Input) (plan.Plan, error) { return plan.Make(in), nil }
	return &Provider{state: newState(v, applier.State), applier: applier, plans: module.NewCache(made)}
}

// Beside has the documents of a Store fit beside what is live of its other modules, by a merge of them all. Before it is called
// nothing is known of these.
func (p *Provider) Beside(merged func(store event.Key) (model.Result, model.Limits, bool)) {
	p.state.merged = merged
}

// Keys is the Store that a PolicyDocument registers with.
func (p *Provider) Keys(k event.Key) []event.Key {
	if k.GroupResource != kinds.PolicyDocuments().GroupResource {
		return nil
	}
	if d, _ := p.state.documents.Last(k); d.Value != nil {
		return []event.Key{storeOf(d)}
	}
	return nil
}

// Sync makes AuthorizationModels of the PolicyDocuments of a Store here, as far as they fit
// together. A Store in deletion gets no more.
func (p *Provider) Sync(ctx context.Context, r consume.Reporter, store event.Key) ([]module.Member, error) {
	found := p.state.snapshot(store)
	if found.empty() || store.Cluster != p.state.shared.Cluster {
		return nil, nil
	}
	result, _ := p.plans.Get(store, found.input) // It has no errors.
	todo := result.Plan
	if s, ok := p.state.shared.Stores.Get(store); !ok || s.Value.DeletionTimestamp != nil {
		todo.Apply = nil
	}
	err := p.applier.Apply(ctx, r, found.carriers, todo)
	var members []module.Member
	for _, d := range found.documents {
		if d.Value.DeletionTimestamp == nil {
			members = append(members, p.member(d, result.Validations[d.Key.Path()]))
		}
	}
	return members, err
}

// Registered returns the documents that refer to a Store, with some more, or others in the place of those of their names.
func (p *Provider) Registered(store event.Key, previewed ...plan.Document) []plan.Document {
	return p.state.snapshot(store, previewed...).input.Documents
}

func (p *Provider) member(d document, v plan.Validation) module.Member {
	m := module.Member{Change: d.Change, Kind: kinds.PolicyDocuments(), Statement: statement(d), Status: func(verdict moduleplan.Verdict) moduleplan.Status {
		return plan.Status(d.Value, v, verdict)
	}}
	if v.AuthorizationModel != "" {
		m.Carrier = p.state.shared.ModelKey(v.AuthorizationModel)
	}
	return m
}

// Modules are none: AuthorizationModels carry them all.
func (p *Provider) Modules(event.Key) ([]model.Module, []confirm.Statement, bool) {
	return nil, nil, true
}

// Missing are none: the Store knows the AuthorizationModels that it was made of.
func (p *Provider) Missing(context.Context, event.Key) ([]confirm.Statement, error) { return nil, nil }

// Documents are those that are registered with a Store, valid or not, or what is accepted of them;
// and the options of its policy.
func (p *Provider) Documents(store event.Key, accepted bool) ([]*syntax.Document, policy.Options, error) {
	found := p.state.snapshot(store)
	texts := map[string]*iaplv1alpha1.Policy{}
	for _, d := range found.input.Documents {
		texts[d.Name] = d.Present
	}
	if accepted {
		result, _ := p.plans.Get(store, found.input) // It has no errors.
		texts = result.Texts
	}
	var documents []*syntax.Document
	for name, text := range texts {
		documents = append(documents, plan.Read("policydocument/"+name, name, text))
	}
	options, err := found.input.Options()
	if err != nil {
		return nil, options, err
	}
	return documents, options, nil
}
