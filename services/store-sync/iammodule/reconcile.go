// Package iammodule gives the model of the IAM store its types: one for each kind that a
// ProtectedResource registers, and those by which roles are given. They follow from objects, not
// from a text, so no AuthorizationModel carries them.
package iammodule

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/store-sync/iammodule/plan"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Provider gives the types of ProtectedResources. Make one with [New].
type Provider struct {
	state   *state
	applier *module.Applier
}

var _ module.Provider = (*Provider)(nil)

// New makes one that reads the view, for the IAM store of a name.
func New(v *view.View, store string, applier *module.Applier) *Provider {
	return &Provider{state: newState(v, module.StoreKey(store, applier.State.Cluster)), applier: applier}
}

// Keys is the IAM store, which every ProtectedResource here has a part in.
func (p *Provider) Keys(k event.Key) []event.Key {
	if k.GroupResource != kinds.ProtectedResources().GroupResource || k.Cluster != p.state.store.Cluster {
		return nil
	}
	return []event.Key{p.state.store}
}

// Sync makes the IAM store if there is none though something is registered. Nothing carries the types.
func (p *Provider) Sync(ctx context.Context, r consume.Reporter, store event.Key) ([]module.Member, error) {
	if store != p.state.store {
		return nil, nil
	}
	errs := []error{p.release(ctx, r)}
	found := p.state.registered()
	if len(found) > 0 {
		errs = append(errs, p.make(ctx, r, found[0]))
	}
	return members(found), errors.Join(errs...)
}

// Waiting are the objects behind the types of a Store of whose present generation nothing is said.
func (p *Provider) Waiting(store event.Key) (waiting []module.Member) {
	if store != p.state.store {
		return nil
	}
	found := p.state.registered()
	for i, m := range members(found) {
		ready := meta.FindStatusCondition(found[i].Value.Status.Conditions, iamv1alpha1.Ready)
		if ready == nil || ready.ObservedGeneration != found[i].Generation {
			waiting = append(waiting, m)
		}
	}
	return waiting
}

func members(found []resource) (members []module.Member) {
	var all types
	for _, o := range found {
		all = append(all, o.Value)
	}
	judge := judged(all)
	for _, o := range found {
		members = append(members, module.Member{
			Change: o.Change, Kind: kinds.ProtectedResources(), Statement: statement(o), Carrier: o.Key,
			Status: func(v moduleplan.Verdict) moduleplan.Status {
				return plan.Status(o.Value, judge(v.Room).Finding(o.Key.Name), v)
			},
		})
	}
	return members
}

// judged judges ProtectedResources by the room that there is, which is the same for all of a pass; zero if nobody can tell.
func judged(all types) func(model.Limits) *iam.Registry {
	var last model.Limits
	var registry *iam.Registry
	return func(room model.Limits) *iam.Registry {
		switch {
		case registry != nil && room == last:
		case room == (model.Limits{}):
			registry = iam.Register(all)
		default:
			registry = iam.Within(all, iam.Room{Types: room.Types, Bytes: room.Bytes})
		}
		last = room
		return registry
	}
}

// make makes the Store, for want of one.
func (p *Provider) make(ctx context.Context, r consume.Reporter, cause resource) error {
	if _, there := p.applier.State.Stores.Get(p.state.store); there {
		return nil
	}
	if err := p.applier.Confirmer.Confirm(ctx, statement(cause)); err != nil {
		return err
	}
	cluster, err := p.applier.Kube.Epoch(ctx)
	if err != nil {
		return err
	}
	now, err := p.applier.Kube.Apply(ctx, kinds.Stores(), event.Change{Key: p.state.store}, map[string]any{"spec": plan.Store(p.state.store.Name, cluster)})
	if err != nil {
		return err
	}
	p.applier.Log.InfoContext(ctx, "Store of IAM made")
	return r.Wrote(ctx, cause.Change, now)
}

// release takes off finalizers of other software, which nothing else would.
func (p *Provider) release(ctx context.Context, r consume.Reporter) error {
	var errs []error
	for _, o := range p.state.resources.All() {
		if o.Key.Cluster != p.state.store.Cluster || !slices.Contains(o.Value.Finalizers, iamv1alpha1.ProtectedResourceFinalizer) {
			continue
		}
		now, err := p.applier.Kube.RemoveFinalizer(ctx, kinds.ProtectedResources(), o.Change, iamv1alpha1.ProtectedResourceFinalizer)
		if err == nil {
			err = r.Wrote(ctx, o.Change, now)
		}
		errs = append(errs, err)
	}
	return fault.Join(errs...)
}

// Missing are the ProtectedResources that the API server has in force, and of which the bus tells that they are gone or to
// go, or nothing: each takes a kind away, with all that is granted on it.
func (p *Provider) Missing(ctx context.Context, store event.Key) (out []confirm.Statement, err error) {
	if store != p.state.store {
		return nil, nil
	}
	known := map[string]bool{}
	for _, o := range p.state.registered() {
		known[o.Key.Name] = true
	}
	err = event.Each(p.applier.Kube.List(ctx, kinds.ProtectedResources(), ""), func(r *iamv1alpha1.ProtectedResource) {
		if !known[r.Name] && r.DeletionTimestamp == nil {
			out = append(out, statement(p.state.last(r.Name)))
		}
	})
	if errors.Is(err, kube.ErrNotServed) {
		return nil, nil
	}
	return out, err
}

// Modules is the one that has the types, or no type as long as nothing is registered: nobody else has names of theirs meanwhile.
func (p *Provider) Modules(store event.Key) (modules []model.Module, made []confirm.Statement, ready bool) {
	if store != p.state.store {
		return nil, nil, true
	}
	var all types
	for _, o := range p.state.registered() {
		all, made = append(all, bare(o.Value)), append(made, statement(o))
	}
	m := model.Module{Origin: model.Origin{Kind: model.IAM}, Types: model.None{}}
	if len(all) > 0 {
		m.Types = all
	}
	return []model.Module{m}, made, true
}
