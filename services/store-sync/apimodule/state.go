package apimodule

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
	"github.com/entail-dev/entail/services/store-sync/module"
)

// Indexes of the tables.
const (
	byLabel  = "store label"
	byGroup  = "group"
	byExport = "export"
	bySchema = "schema"
)

// state is what modules are made from: the objects of APIs. Those that matter are in the cluster
// of shared; APIBindings and AccountInfos are in kcp's workspaces.
type state struct {
	shared      *module.State
	definitions *view.Table[plan.Definition]
	bindings    *view.Table[plan.Binding]
	exports     *view.Table[plan.Export]
	schemas     *view.Table[plan.Schema]
	accounts    *view.Table[corev1alpha1.AccountInfo]
}

func newState(v *view.View, shared *module.State) *state {
	return &state{
		shared: shared,
		definitions: view.Register(v, kinds.Definitions(), map[string]func(*plan.Definition) []string{
			byLabel: func(d *plan.Definition) []string { return []string{d.Labels[corev1alpha1.StoreNameLabel]} },
			byGroup: func(d *plan.Definition) []string { return []string{d.Spec.Group} },
		}),
		bindings: view.Register(v, kinds.Bindings(), map[string]func(*plan.Binding) []string{
			byExport: func(b *plan.Binding) []string { return []string{b.ExportName()} },
		}),
		exports: view.Register(v, kinds.Exports(), map[string]func(*plan.Export) []string{
			bySchema: (*plan.Export).Schemas,
		}),
		schemas:  view.Register[plan.Schema](v, kinds.ResourceSchemas(), nil),
		accounts: view.Register[corev1alpha1.AccountInfo](v, kinds.AccountInfos(), nil),
	}
}

// Serving lists the resources that are defined to be served in a group-version.
func (s *state) Serving(gv schema.GroupVersion) []plan.Resource {
	var found []plan.Resource
	for _, d := range s.definitions.By(byGroup, gv.Group) {
		if d.Key.Cluster == s.shared.Cluster && d.Value.Serves(gv.Version) {
			found = append(found, d.Value.Resource())
		}
	}
	return found
}

// Gone reports whether the definition of a resource was deleted.
func (s *state) Gone(r plan.Resource) bool {
	_, gone := s.definitions.Tombstone(event.Key{Cluster: s.shared.Cluster, GroupResource: kinds.Definitions().GroupResource, Name: r.String()})
	return gone
}
