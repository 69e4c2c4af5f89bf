package storesync

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	apimodel "github.com/entail-dev/entail/services/store-sync/apimodule/plan"
)

// Indexes of the tables of APIs.
const (
	byLabel  = "store label"
	byGroup  = "group"
	byExport = "export"
	bySchema = "schema"
)

// apis finds the objects that modules are made from.
type apis struct {
	// cluster is the one whose CustomResourceDefinitions and APIExports matter.
	cluster     string
	definitions *view.Table[apimodel.Definition]
	bindings    *view.Table[apimodel.Binding]
	exports     *view.Table[apimodel.Export]
	schemas     *view.Table[apimodel.Schema]
	accounts    *view.Table[corev1alpha1.AccountInfo]
}

func newAPIs(v *view.View, cluster string) apis {
	return apis{
		cluster: cluster,
		definitions: view.Register(v, kinds.Definitions(), map[string]func(*apimodel.Definition) []string{
			byLabel: func(d *apimodel.Definition) []string { return []string{d.Labels[corev1alpha1.StoreNameLabel]} },
			byGroup: func(d *apimodel.Definition) []string { return []string{d.Spec.Group} },
		}),
		bindings: view.Register(v, kinds.Bindings(), map[string]func(*apimodel.Binding) []string{
			byExport: func(b *apimodel.Binding) []string { return []string{b.ExportName()} },
		}),
		exports: view.Register(v, kinds.Exports(), map[string]func(*apimodel.Export) []string{
			bySchema: (*apimodel.Export).Schemas,
		}),
		schemas:  view.Register[apimodel.Schema](v, kinds.ResourceSchemas(), nil),
		accounts: view.Register[corev1alpha1.AccountInfo](v, kinds.AccountInfos(), nil),
	}
}

// Serving lists the resources that are defined to be served in a group-version.
func (a apis) Serving(gv schema.GroupVersion) []apimodel.Resource {
	var found []apimodel.Resource
	for _, d := range a.definitions.By(byGroup, gv.Group) {
		if d.Key.Cluster == a.cluster && d.Value.Serves(gv.Version) {
			found = append(found, d.Value.Resource())
		}
	}
	return found
}

// Gone reports whether the definition of a resource was deleted.
func (a apis) Gone(r apimodel.Resource) bool {
	_, gone := a.definitions.Tombstone(event.Key{Cluster: a.cluster, GroupResource: kinds.Definitions().GroupResource, Name: r.String()})
	return gone
}

// keys lists the Stores that an object of an API touches. A binding is looked at itself, too.
func (a apis) keys(k event.Key) []event.Key {
	switch k.GroupResource {
	case kinds.Definitions().GroupResource:
		if d := last(a.definitions, k); d != nil && k.Cluster == a.cluster && d.Labels[corev1alpha1.StoreNameLabel] != "" {
			return []event.Key{a.store(d.Labels[corev1alpha1.StoreNameLabel], "")}
		}
	case kinds.Bindings().GroupResource:
		keys := []event.Key{k}
		if b := last(a.bindings, k); b != nil {
			keys = append(keys, a.storesOf(k.Cluster)...)
		}
		return keys
	case kinds.AccountInfos().GroupResource:
		if i := last(a.accounts, k); i != nil && k.Name == corev1alpha1.AccountInfoName {
			return []event.Key{a.store(i.Spec.Organization.Name, i.Spec.Organization.OriginCluster)}
		}
	case kinds.Exports().GroupResource:
		return a.boundTo(k.Cluster, k.Name)
	case kinds.ResourceSchemas().GroupResource:
		var keys []event.Key
		for _, e := range a.exports.By(bySchema, k.Name) {
			if e.Key.Cluster == k.Cluster {
				keys = append(keys, a.boundTo(k.Cluster, e.Key.Name)...)
			}
		}
		return unique(keys)
	}
	return nil
}

// last is the newest known state of an object, living or not.
func last[T any](table *view.Table[T], k event.Key) *T {
	o, live := table.Get(k)
	if !live {
		o, _ = table.Tombstone(k)
	}
	return o.Value
}

// store is the key of a Store that an object here refers to.
func (a apis) store(name, cluster string) event.Key {
	return event.Key{Cluster: cmp.Or(cluster, a.cluster), GroupResource: kinds.Stores().GroupResource, Name: name}
}

// storesOf is the Store of the organization that a kcp workspace belongs to, if that is known.
func (a apis) storesOf(workspace string) []event.Key {
	i, known := a.accounts.Get(accountOf(workspace))
	if !known {
		return nil
	}
	return []event.Key{a.store(i.Value.Spec.Organization.Name, i.Value.Spec.Organization.OriginCluster)}
}

func accountOf(workspace string) event.Key {
	return event.Key{Cluster: workspace, GroupResource: kinds.AccountInfos().GroupResource, Name: corev1alpha1.AccountInfoName}
}

// made lists the Stores that have AuthorizationModels for an export.
func (o objects) madeFor(b *apimodel.Binding) []event.Key {
	var keys []event.Key
	for _, m := range o.modules.By(byExport, b.Status.ExportCluster+"/"+b.ExportName()) {
		keys = append(keys, storeOf(m.Key, m.Value))
	}
	return unique(keys)
}

// boundTo lists the Stores of the workspaces that bind an export.
func (a apis) boundTo(cluster, export string) []event.Key {
	var keys []event.Key
	for _, b := range a.bindings.By(byExport, export) {
		if b.Value.Status.ExportCluster == cluster {
			keys = append(keys, a.storesOf(b.Key.Cluster)...)
		}
	}
	return unique(keys)
}

func unique(keys []event.Key) []event.Key {
	slices.SortFunc(keys, func(x, y event.Key) int {
		return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Name, y.Name))
	})
	return slices.Compact(keys)
}

// bound is a binding with what it leads to.
func (a apis) bound(b view.Object[apimodel.Binding]) apimodel.Bound {
	found := apimodel.Bound{Binding: b.Value, Schemas: map[string]*apimodel.Schema{}}
	if i, known := a.accounts.Get(accountOf(b.Key.Cluster)); known {
		found.Account = i.Value
	}
	at := func(kind kinds.Kind, name string) event.Key {
		return event.Key{Cluster: b.Value.Status.ExportCluster, GroupResource: kind.GroupResource, Name: name}
	}
	e, known := a.exports.Get(at(kinds.Exports(), b.Value.ExportName()))
	if !known {
		return found
	}
	found.Export = e.Value
	for _, name := range e.Value.Schemas() {
		if s, known := a.schemas.Get(at(kinds.ResourceSchemas(), name)); known {
			found.Schemas[name] = s.Value
		}
	}
	return found
}

// exportsHere lists the names of the APIExports of this cluster: those that exist, and those that models were made for.
func (a apis) exportsHere(made []*corev1alpha1.AuthorizationModel) []string {
	var names []string
	for _, e := range a.exports.All() {
		if e.Key.Cluster == a.cluster {
			names = append(names, e.Key.Name)
		}
	}
	for _, m := range made {
		if name, here := strings.CutPrefix(m.Annotations[corev1alpha1.ExportAnnotation], a.cluster+"/"); here {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
