package apimodule

import (
	"slices"
	"strings"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
	"github.com/entail-dev/entail/services/store-sync/module"
)

// snapshot is what the AuthorizationModels of APIs in one Store depend on.
type snapshot struct {
	input plan.Input
	// made are the present states by name, causes the objects by resource that ask for one.
	made, causes map[string]event.Change
	// definitions are the labelled ones.
	definitions []event.Change
}

// snapshot gathers what the view holds. AuthorizationModels are made in the cluster of their API.
func (s *state) snapshot(store event.Key, template plan.Template) *snapshot {
	found := &snapshot{
		input: plan.Input{
			Template: template, Unsure: map[string]bool{},
			Taken: func(name string) bool { _, taken := s.shared.Models.Get(s.shared.ModelKey(name)); return taken },
		},
		made: map[string]event.Change{}, causes: map[string]event.Change{},
	}
	for _, m := range s.shared.ModelsOf(store) {
		if m.Value.Annotations[corev1alpha1.ResourceAnnotation] != "" && m.Key.Cluster == s.shared.Cluster {
			found.input.Has, found.made[m.Key.Name] = append(found.input.Has, m.Value), m.Change
		}
	}
	if store.Cluster == s.shared.Cluster {
		for _, d := range s.definitions.By(byLabel, store.Name) {
			if wanted, ok := plan.OfDefinition(d.Value); ok && d.Key.Cluster == s.shared.Cluster {
				found.want(d.Change, wanted)
				found.definitions = append(found.definitions, d.Change)
			}
		}
	}
	for _, export := range s.exportsHere(found.input.Has) {
		s.addBindings(found, store, export)
	}
	return found
}

// addBindings adds what the bindings of an export here ask for. One whose organization is not known could be of any.
func (s *state) addBindings(found *snapshot, store event.Key, export string) {
	for _, b := range s.bindings.By(byExport, export) {
		stores := s.storesOf(b.Key.Cluster)
		if b.Value.Status.ExportCluster != s.shared.Cluster || len(stores) > 0 && !slices.Contains(stores, store) {
			continue
		}
		wanted, all := plan.OfBinding(s.bound(b))
		found.want(b.Change, wanted...)
		if !all {
			found.input.Unsure[s.shared.Cluster+"/"+export] = true
		}
	}
}

func (f *snapshot) want(cause event.Change, wanted ...plan.Wanted) {
	for _, w := range wanted {
		f.causes[w.Resource.String()] = cause
	}
	f.input.Wanted = append(f.input.Wanted, wanted...)
}

// carriers are what was made.
func (f *snapshot) carriers() module.Carriers {
	return module.Carriers{Made: f.made, Cause: func(m *corev1alpha1.AuthorizationModel) event.Change {
		return f.causes[m.Annotations[corev1alpha1.ResourceAnnotation]]
	}}
}

// bound is a binding with what it leads to.
func (s *state) bound(b view.Object[plan.Binding]) plan.Bound {
	found := plan.Bound{Binding: b.Value, Schemas: map[string]*plan.Schema{}}
	if i, known := s.accounts.Get(accountOf(b.Key.Cluster)); known {
		found.Account = i.Value
	}
	at := func(kind kinds.Kind, name string) event.Key {
		return event.Key{Cluster: b.Value.Status.ExportCluster, GroupResource: kind.GroupResource, Name: name}
	}
	e, known := s.exports.Get(at(kinds.Exports(), b.Value.ExportName()))
	if !known {
		return found
	}
	found.Export = e.Value
	for _, name := range e.Value.Schemas() {
		if schema, known := s.schemas.Get(at(kinds.ResourceSchemas(), name)); known {
			found.Schemas[name] = schema.Value
		}
	}
	return found
}

// exportsHere lists the names of the APIExports of this cluster: those that exist, and those that models were made for.
func (s *state) exportsHere(made []*corev1alpha1.AuthorizationModel) []string {
	var names []string
	for _, e := range s.exports.All() {
		if e.Key.Cluster == s.shared.Cluster {
			names = append(names, e.Key.Name)
		}
	}
	for _, m := range made {
		if name, here := strings.CutPrefix(m.Annotations[corev1alpha1.ExportAnnotation], s.shared.Cluster+"/"); here {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
