// Package policymodule provides the modules of PolicyDocuments. All documents of a Store form one policy, and its valid
// part becomes AuthorizationModels.
package policymodule

import (
	"context"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
	"github.com/entail-dev/entail/services/store-sync/policymodule/plan"
)

// Provider provides the modules of PolicyDocuments. Create it with [New].
type Provider struct {
	state   *state
	applier *module.Applier
	plans   *module.PerStoreCache[plan.Input, plan.Plan]
}

var _ module.Provider = (*Provider)(nil)

// New returns a provider that reads the informer. The documents of a Store must fit beside the live part of the other
// modules, which merged returns. If merged is nil, they need not fit.
func New(v *informer.Informer, applier *module.Applier, merged MergeAfterPlanFunc) *Provider {
	made := func(in plan.Input) (plan.Plan, error) { return plan.DecideDocuments(in), nil }
	return &Provider{state: newState(v, applier.State, merged), applier: applier, plans: module.NewPerStoreCache(made)}
}

// planPolicy returns the plan for the policy of a Store.
func (p *Provider) planPolicy(store event.Key, in plan.Input) plan.Plan {
	made := func(in plan.Input) plan.Plan {
		todo, _ := p.plans.Get(store, in) // It has no errors.
		return todo
	}
	if p.state.merged == nil {
		return made(in)
	}
	return plan.DecideUntilStable(in, made, func(todo moduleplan.Plan) (model.MergeResult, model.Limits, bool) { return p.state.merged(store, todo) })
}

// AffectedKeys returns the Store to which a PolicyDocument refers.
func (p *Provider) AffectedKeys(k event.Key) []event.Key {
	if k.GroupResource != kinds.PolicyDocuments().GroupResource {
		return nil
	}
	if d, _ := p.state.documents.GetOrTombstone(k); d.Value != nil {
		return []event.Key{referencedStoreKey(d)}
	}
	return nil
}

// SyncModels applies the AuthorizationModels of the PolicyDocuments of a Store in this cluster, as far as the documents fit
// together. It applies none for a Store in deletion.
func (p *Provider) SyncModels(ctx context.Context, r controller.UntypedRequest, store event.Key) ([]module.StatusTarget, error) {
	found := p.state.collectSnapshot(store)
	if found.isEmpty() || store.Cluster != p.state.shared.Cluster {
		return nil, nil
	}
	result := p.planPolicy(store, found.input)
	todo := result.Plan
	if s, ok := p.state.shared.Stores.Get(store); !ok || s.Value.DeletionTimestamp != nil {
		todo.Apply = nil
	}
	err := p.applier.ApplyPlan(ctx, r, found.carriers, todo)
	var members []module.StatusTarget
	for _, d := range found.documents {
		if d.Value.DeletionTimestamp == nil {
			members = append(members, p.statusTargetOf(d, result.Validations[d.Key.NamespacedName()]))
		}
	}
	return members, err
}

// RegisteredDocuments returns the documents that refer to a Store. The previewed ones replace documents with the same name, and
// the others are added.
func (p *Provider) RegisteredDocuments(store event.Key, previewed ...plan.Document) []plan.Document {
	return p.state.collectSnapshot(store, previewed...).input.Documents
}

func (p *Provider) statusTargetOf(d policyDocument, v plan.DocumentValidation) module.StatusTarget {
	m := module.StatusTarget{
		Change: d.Change, Kind: kinds.PolicyDocuments(), Expected: expectedDocument(d),
		Status: func(verdict moduleplan.Verdict) moduleplan.ObjectStatus {
			return plan.DesiredStatus(d.Value, v, verdict)
		},
	}
	if v.AuthorizationModel != "" {
		m.Carrier = p.state.shared.ModelKey(v.AuthorizationModel)
	}
	return m
}

// DirectModules returns nothing: AuthorizationModels carry all modules of documents.
func (p *Provider) DirectModules(event.Key) ([]model.Module, bool) { return nil, true }

// ParsedDocuments returns the documents that refer to a Store, valid or not, and the options of its policy. With accepted it
// returns only the accepted part of each.
func (p *Provider) ParsedDocuments(store event.Key, accepted bool) ([]*syntax.Document, policy.Options, error) {
	found := p.state.collectSnapshot(store)
	texts := map[string]*iaplv1alpha1.Policy{}
	for _, d := range found.input.Documents {
		texts[d.Name] = d.Present
	}
	if accepted {
		texts = p.planPolicy(store, found.input).Texts
	}
	var documents []*syntax.Document
	for name, text := range texts {
		documents = append(documents, plan.ToSyntaxDocument("policydocument/"+name, name, text))
	}
	options, err := found.input.PolicyOptions()
	if err != nil {
		return nil, options, err
	}
	return documents, options, nil
}
