package storesync

import (
	"context"
	"errors"
	"slices"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	apimodel "github.com/entail-dev/entail/services/store-sync/apimodule/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// generation is what the AuthorizationModels of APIs in one Store depend on.
type generation struct {
	apimodel.Input

	// made are the present states by name, causes the objects by resource that ask for one.
	made   map[string]event.Change
	causes map[string]event.Change
	// definitions are the labelled ones.
	definitions []event.Change
}

// generation gathers what the view holds. AuthorizationModels are made in the cluster of their API.
func (o objects) generation(store event.Key) generation {
	g := generation{
		Input: apimodel.Input{
			Template: apimodel.Template{AccountType: o.discovery.AccountType()}, Unsure: map[string]bool{},
			Taken: func(name string) bool { _, taken := o.modules.Get(o.module(name)); return taken },
		},
		made: map[string]event.Change{}, causes: map[string]event.Change{},
	}
	for _, m := range o.modules.By(byStoreRef, store.Name) {
		if m.Value.Annotations[corev1alpha1.ResourceAnnotation] != "" && m.Key.Cluster == o.cluster && storeOf(m.Key, m.Value) == store {
			g.Has, g.made[m.Key.Name] = append(g.Has, m.Value), m.Change
		}
	}
	if store.Cluster == o.cluster {
		for _, d := range o.definitions.By(byLabel, store.Name) {
			if wanted, ok := apimodel.OfDefinition(d.Value); ok && d.Key.Cluster == o.cluster {
				g.want(d.Change, wanted)
				g.definitions = append(g.definitions, d.Change)
			}
		}
	}
	for _, export := range o.exportsHere(g.Has) {
		o.bindingsOf(&g, store, export)
	}
	return g
}

// bindingsOf adds what the bindings of an export here ask for. One whose organization is not known could be of any.
func (o objects) bindingsOf(g *generation, store event.Key, export string) {
	for _, b := range o.bindings.By(byExport, export) {
		stores := o.storesOf(b.Key.Cluster)
		if b.Value.Status.ExportCluster != o.cluster || len(stores) > 0 && !slices.Contains(stores, store) {
			continue
		}
		wanted, all := apimodel.OfBinding(o.bound(b))
		g.want(b.Change, wanted...)
		if !all {
			g.Unsure[o.cluster+"/"+export] = true
		}
	}
}

func (g *generation) want(cause event.Change, wanted ...apimodel.Wanted) {
	for _, w := range wanted {
		g.causes[w.Resource.String()] = cause
	}
	g.Wanted = append(g.Wanted, wanted...)
}

// module is the key of an AuthorizationModel here.
func (o objects) module(name string) event.Key {
	return event.Key{Cluster: o.cluster, GroupResource: kinds.AuthorizationModels().GroupResource, Name: name}
}

// generate makes the AuthorizationModels of APIs in a Store be as they should be. One that
// cannot be made holds up no other. A Store in deletion gets no more.
func (r *reconciler) generate(ctx context.Context, store event.Key) ([]consume.Result, error) {
	g := r.generation(store)
	steps := apimodel.Make(g.Input)
	var errs []error
	if s, ok := r.stores.Get(store); !ok || s.Value.DeletionTimestamp == nil {
		for i := range steps.Apply {
			m := &steps.Apply[i]
			errs = append(errs, r.makeModule(ctx, g.made[m.Name], g.causes[m.Annotations[corev1alpha1.ResourceAnnotation]], m))
		}
	}
	errs = append(errs, r.deleteModules(ctx, g.made, steps.Delete))
	var results []consume.Result
	for _, d := range g.definitions {
		result := consume.Result{Change: d, Outcome: eventv1.Outcome_OUTCOME_APPLIED}
		for unnamed, why := range steps.Unnamed {
			if g.causes[unnamed.String()].Key == d.Key {
				result.Outcome, result.Message = eventv1.Outcome_OUTCOME_REJECTED, why
			}
		}
		results = append(results, result)
	}
	return results, errors.Join(errs...)
}

// discover makes sure that the resources of the API server are known where a Store wants them. What was known before does for now.
func (r *reconciler) discover(ctx context.Context, store event.Key) (ready bool, err error) {
	s, ok := r.stores.Get(store)
	if !ok || store.Cluster != r.cluster || s.Value.DeletionTimestamp != nil || !plan.Discovers(s.Value) {
		return true, nil
	}
	err = r.discovery.Refresh(ctx)
	_, ready = r.discovery.Modules()
	return ready, err
}

// noticed sees every change before its reconciliation.
func (r *reconciler) noticed(k event.Key) {
	if k.GroupResource == kinds.Definitions().GroupResource && k.Cluster == r.cluster && r.discovery.Concerns(groupOf(k)) {
		r.discovery.Invalidate()
	}
}
