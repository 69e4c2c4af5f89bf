package apimodule

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
	"github.com/entail-dev/entail/services/store-sync/module"
)

// These are the indexes of the tables.
const (
	byLabel  = "store label"
	byGroup  = "group"
	byExport = "export"
	bySchema = "schema"
)

// state holds the objects from which the modules of APIs are made. Most belong to the cluster of shared; APIBindings
// and AccountInfos are in kcp's workspaces.
type state struct {
	shared      *module.State
	definitions *informer.Lister[plan.Definition]
	bindings    *informer.Lister[plan.Binding]
	exports     *informer.Lister[plan.Export]
	schemas     *informer.Lister[plan.Schema]
	accounts    *informer.Lister[corev1alpha1.AccountInfo]
}

func newState(v *informer.Informer, shared *module.State) *state {
	return &state{
		shared: shared,
		definitions: informer.Register(v, kinds.Definitions(), map[string]func(*plan.Definition) []string{
			byLabel: func(d *plan.Definition) []string { return []string{d.Labels[corev1alpha1.StoreNameLabel]} },
			byGroup: func(d *plan.Definition) []string { return []string{d.Spec.Group} },
		}),
		bindings: informer.Register(v, kinds.Bindings(), map[string]func(*plan.Binding) []string{
			byExport: func(b *plan.Binding) []string { return []string{b.ExportName()} },
		}),
		exports: informer.Register(v, kinds.Exports(), map[string]func(*plan.Export) []string{
			bySchema: (*plan.Export).Schemas,
		}),
		schemas:  informer.Register[plan.Schema](v, kinds.ResourceSchemas(), nil),
		accounts: informer.Register[corev1alpha1.AccountInfo](v, kinds.AccountInfos(), nil),
	}
}

// Serving lists the resources whose definitions are served in a group-version.
func (s *state) Serving(gv schema.GroupVersion) []plan.Resource {
	var found []plan.Resource
	for _, d := range s.definitions.By(byGroup, gv.Group) {
		if d.Key.Cluster == s.shared.Cluster && d.Value.IsServed(gv.Version) {
			found = append(found, d.Value.Spec.Resource())
		}
	}
	return found
}

// IsGone reports whether the definition of a resource was deleted.
func (s *state) IsGone(r plan.Resource) bool {
	_, gone := s.definitions.Tombstone(s.definitionKey(r.String()))
	return gone
}

func (s *state) definitionKey(name string) event.Key {
	return event.Key{Cluster: s.shared.Cluster, GroupResource: kinds.Definitions().GroupResource, Name: name}
}

// labelledStores returns the Store that the label of a definition in this cluster names.
func (s *state) labelledStores(definition event.Key) []event.Key {
	d, _ := s.definitions.Last(definition)
	if d.Value == nil || definition.Cluster != s.shared.Cluster || d.Value.Labels[corev1alpha1.StoreNameLabel] == "" {
		return nil
	}
	return []event.Key{module.StoreKey(d.Value.Labels[corev1alpha1.StoreNameLabel], s.shared.Cluster)}
}

// storesOf returns the Store of the organization of a kcp workspace, or nothing if the view holds no AccountInfo for
// it.
func (s *state) storesOf(workspace string) []event.Key {
	i, known := s.accounts.Get(accountOf(workspace))
	if !known {
		return nil
	}
	return []event.Key{s.organizationKey(i.Value)}
}

// organizationKey returns the key of the Store of the organization that an account belongs to.
func (s *state) organizationKey(i *corev1alpha1.AccountInfo) event.Key {
	return module.StoreKey(i.Spec.Organization.Name, cmp.Or(i.Spec.Organization.OriginCluster, s.shared.Cluster))
}

func accountOf(workspace string) event.Key {
	return event.Key{Cluster: workspace, GroupResource: kinds.AccountInfos().GroupResource, Name: corev1alpha1.AccountInfoName}
}

// boundTo lists the Stores of the workspaces that bind an export.
func (s *state) boundTo(cluster, export string) []event.Key {
	var keys []event.Key
	for _, b := range s.bindings.By(byExport, export) {
		if b.Value.Status.ExportCluster == cluster {
			keys = append(keys, s.storesOf(b.Key.Cluster)...)
		}
	}
	return keys
}

// snapshot holds everything that the AuthorizationModels of APIs in one Store depend on.
type snapshot struct {
	input    plan.Input
	carriers *module.Carriers
	// definitions are the labelled CustomResourceDefinitions.
	definitions []event.Change
}

// collectState collects the state from the view. AuthorizationModels are made in the cluster of their API.
func (s *state) collectState(store event.Key, template plan.Template) *snapshot {
	found := &snapshot{
		input: plan.Input{
			Template: template, Unsure: map[string]bool{},
			Taken: func(name string) bool { _, taken := s.shared.Models.Get(s.shared.ModelKey(name)); return taken },
		},
		carriers: s.shared.CarriersOf(store, corev1alpha1.ResourceAnnotation),
	}
	found.input.Has = found.carriers.Models
	if store.Cluster == s.shared.Cluster {
		for _, d := range s.definitions.By(byLabel, store.Name) {
			if wanted, ok := plan.OfDefinition(d.Value); ok && d.Key.Cluster == s.shared.Cluster {
				found.addWanted(d.Change, wanted)
				found.definitions = append(found.definitions, d.Change)
			}
		}
	}
	for _, export := range s.exportsHere(found.input.Has) {
		s.addBindings(found, store, export)
	}
	return found
}

// addBindings adds the modules that the bindings of an export in this cluster need. A binding without a known
// organization may belong to any Store, so it counts for this one too.
func (s *state) addBindings(found *snapshot, store event.Key, export string) {
	for _, b := range s.bindings.By(byExport, export) {
		stores := s.storesOf(b.Key.Cluster)
		if b.Value.Status.ExportCluster != s.shared.Cluster || len(stores) > 0 && !slices.Contains(stores, store) {
			continue
		}
		wanted, all := plan.OfBinding(s.boundAPI(b))
		found.addWanted(b.Change, wanted...)
		if !all {
			found.input.Unsure[s.shared.Cluster+"/"+export] = true
		}
	}
}

func (f *snapshot) addWanted(cause event.Change, wanted ...plan.Wanted) {
	for _, w := range wanted {
		f.carriers.Causes[w.Resource.String()] = cause
	}
	f.input.Wanted = append(f.input.Wanted, wanted...)
}

// boundAPI returns a binding with the objects that it leads to.
func (s *state) boundAPI(b informer.Object[plan.Binding]) plan.Bound {
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

// exportsHere lists the names of this cluster's APIExports: those that exist, and those for which models were made.
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
