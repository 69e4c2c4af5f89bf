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
	shared      *module.StoreListers
	definitions *informer.Lister[plan.ResourceDefinition]
	bindings    *informer.Lister[plan.APIBinding]
	exports     *informer.Lister[plan.APIExport]
	schemas     *informer.Lister[plan.ResourceSchema]
	accounts    *informer.Lister[corev1alpha1.AccountInfo]
}

func newState(v *informer.Informer, shared *module.StoreListers) *state {
	return &state{
		shared: shared,
		definitions: informer.RegisterLister(v, kinds.CustomResourceDefinitions(), map[string]func(*plan.ResourceDefinition) []string{
			byLabel: func(d *plan.ResourceDefinition) []string { return []string{d.Labels[corev1alpha1.StoreNameLabel]} },
			byGroup: func(d *plan.ResourceDefinition) []string { return []string{d.Spec.Group} },
		}),
		bindings: informer.RegisterLister(v, kinds.APIBindings(), map[string]func(*plan.APIBinding) []string{
			byExport: func(b *plan.APIBinding) []string { return []string{b.ExportName()} },
		}),
		exports: informer.RegisterLister(v, kinds.APIExports(), map[string]func(*plan.APIExport) []string{
			bySchema: (*plan.APIExport).SchemaNames,
		}),
		schemas:  informer.RegisterLister[plan.ResourceSchema](v, kinds.APIResourceSchemas(), nil),
		accounts: informer.RegisterLister[corev1alpha1.AccountInfo](v, kinds.AccountInfos(), nil),
	}
}

// ServedResources lists the resources whose definitions are served in a group-version.
func (s *state) ServedResources(gv schema.GroupVersion) []plan.APIResource {
	var found []plan.APIResource
	for _, d := range s.definitions.ListByIndex(byGroup, gv.Group) {
		if d.Key.Cluster == s.shared.Cluster && d.Value.IsServed(gv.Version) {
			found = append(found, d.Value.Spec.Resource())
		}
	}
	return found
}

// IsDefinitionDeleted reports whether the definition of a resource was deleted.
func (s *state) IsDefinitionDeleted(r plan.APIResource) bool {
	_, gone := s.definitions.Tombstone(s.definitionKey(r.String()))
	return gone
}

func (s *state) definitionKey(name string) event.Key {
	return event.Key{Cluster: s.shared.Cluster, GroupResource: kinds.CustomResourceDefinitions().GroupResource, Name: name}
}

// storesNamedByLabel returns the Store that the label of a definition in this cluster names.
func (s *state) storesNamedByLabel(definition event.Key) []event.Key {
	d, _ := s.definitions.GetOrTombstone(definition)
	if d.Value == nil || definition.Cluster != s.shared.Cluster || d.Value.Labels[corev1alpha1.StoreNameLabel] == "" {
		return nil
	}
	return []event.Key{module.StoreKey(d.Value.Labels[corev1alpha1.StoreNameLabel], s.shared.Cluster)}
}

// storesOfWorkspace returns the Store of the organization of a kcp workspace, or nothing if the informer holds no
// AccountInfo for it.
func (s *state) storesOfWorkspace(workspace string) []event.Key {
	i, known := s.accounts.Get(accountInfoKey(workspace))
	if !known {
		return nil
	}
	return []event.Key{s.organizationStoreKey(i.Value)}
}

// organizationStoreKey returns the key of the Store of the organization that an account belongs to.
func (s *state) organizationStoreKey(i *corev1alpha1.AccountInfo) event.Key {
	return module.StoreKey(i.Spec.Organization.Name, cmp.Or(i.Spec.Organization.OriginCluster, s.shared.Cluster))
}

func accountInfoKey(workspace string) event.Key {
	return event.Key{Cluster: workspace, GroupResource: kinds.AccountInfos().GroupResource, Name: corev1alpha1.AccountInfoName}
}

// storesBindingExport lists the Stores of the workspaces that bind an export.
func (s *state) storesBindingExport(cluster, export string) []event.Key {
	var keys []event.Key
	for _, b := range s.bindings.ListByIndex(byExport, export) {
		if b.Value.Status.ExportCluster == cluster {
			keys = append(keys, s.storesOfWorkspace(b.Key.Cluster)...)
		}
	}
	return keys
}

// storeSnapshot holds everything that the AuthorizationModels of APIs in one Store depend on.
type storeSnapshot struct {
	input    plan.ModelsInput
	carriers *module.GeneratedModels
	// definitions are the labelled CustomResourceDefinitions.
	definitions []event.Change
}

// collectSnapshot collects the state from the informer. AuthorizationModels are made in the cluster of their API.
func (s *state) collectSnapshot(store event.Key, template plan.ModuleTemplate) *storeSnapshot {
	found := &storeSnapshot{
		input: plan.ModelsInput{
			Template: template, Unsure: map[string]bool{},
			Taken: func(name string) bool { _, taken := s.shared.Models.Get(s.shared.ModelKey(name)); return taken },
		},
		carriers: s.shared.GeneratedModelsOf(store, corev1alpha1.ResourceAnnotation),
	}
	found.input.Has = found.carriers.Models
	if store.Cluster == s.shared.Cluster {
		for _, d := range s.definitions.ListByIndex(byLabel, store.Name) {
			if wanted, ok := plan.ModelWantedByDefinition(d.Value); ok && d.Key.Cluster == s.shared.Cluster {
				found.addWantedModels(d.Change, wanted)
				found.definitions = append(found.definitions, d.Change)
			}
		}
	}
	for _, export := range s.localExportNames(found.input.Has) {
		s.addModelsForBindings(found, store, export)
	}
	return found
}

// addModelsForBindings adds the modules that the bindings of an export in this cluster need. A binding without a known
// organization may belong to any Store, so it counts for this one too.
func (s *state) addModelsForBindings(found *storeSnapshot, store event.Key, export string) {
	for _, b := range s.bindings.ListByIndex(byExport, export) {
		stores := s.storesOfWorkspace(b.Key.Cluster)
		if b.Value.Status.ExportCluster != s.shared.Cluster || len(stores) > 0 && !slices.Contains(stores, store) {
			continue
		}
		wanted, all := plan.ModelsWantedByBinding(s.resolveBinding(b))
		found.addWantedModels(b.Change, wanted...)
		if !all {
			found.input.Unsure[s.shared.Cluster+"/"+export] = true
		}
	}
}

func (f *storeSnapshot) addWantedModels(cause event.Change, wanted ...plan.WantedModel) {
	for _, w := range wanted {
		f.carriers.Causes[w.Resource.String()] = cause
	}
	f.input.Wanted = append(f.input.Wanted, wanted...)
}

// resolveBinding returns a binding with the objects that it leads to.
func (s *state) resolveBinding(b informer.Object[plan.APIBinding]) plan.ResolvedBinding {
	found := plan.ResolvedBinding{Binding: b.Value, Schemas: map[string]*plan.ResourceSchema{}}
	if i, known := s.accounts.Get(accountInfoKey(b.Key.Cluster)); known {
		found.Account = i.Value
	}
	at := func(kind kinds.Kind, name string) event.Key {
		return event.Key{Cluster: b.Value.Status.ExportCluster, GroupResource: kind.GroupResource, Name: name}
	}
	e, known := s.exports.Get(at(kinds.APIExports(), b.Value.ExportName()))
	if !known {
		return found
	}
	found.Export = e.Value
	for _, name := range e.Value.SchemaNames() {
		if schema, known := s.schemas.Get(at(kinds.APIResourceSchemas(), name)); known {
			found.Schemas[name] = schema.Value
		}
	}
	return found
}

// localExportNames lists the names of this cluster's APIExports: those that exist, and those for which models were made.
func (s *state) localExportNames(made []*corev1alpha1.AuthorizationModel) []string {
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
