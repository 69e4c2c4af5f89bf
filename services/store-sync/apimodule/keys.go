package apimodule

import (
	"cmp"
	"slices"
	"strings"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
	"github.com/entail-dev/entail/services/store-sync/module"
)

// Keys lists the Stores that an object of an API touches. An APIBinding is a key itself, too.
func (p *Provider) Keys(k event.Key) []event.Key {
	s := p.state
	switch k.GroupResource {
	case kinds.Definitions().GroupResource:
		return append(s.labelled(k), p.discovering(k)...)
	case kinds.Bindings().GroupResource:
		if b, _ := s.bindings.Last(k); b.Value == nil {
			return []event.Key{k}
		}
		return append([]event.Key{k}, s.storesOf(k.Cluster)...)
	case kinds.AccountInfos().GroupResource:
		if i, _ := s.accounts.Last(k); i.Value != nil && k.Name == corev1alpha1.AccountInfoName {
			return []event.Key{s.organization(i.Value)}
		}
	case kinds.Exports().GroupResource:
		return s.boundTo(k.Cluster, k.Name)
	case kinds.ResourceSchemas().GroupResource:
		var keys []event.Key
		for _, e := range s.exports.By(bySchema, k.Name) {
			if e.Key.Cluster == k.Cluster {
				keys = append(keys, s.boundTo(k.Cluster, e.Key.Name)...)
			}
		}
		return unique(keys)
	}
	return nil
}

// labelled is the Store that the label of a definition here names.
func (s *state) labelled(definition event.Key) []event.Key {
	d, _ := s.definitions.Last(definition)
	if d.Value == nil || definition.Cluster != s.shared.Cluster || d.Value.Labels[corev1alpha1.StoreNameLabel] == "" {
		return nil
	}
	return []event.Key{module.StoreKey(d.Value.Labels[corev1alpha1.StoreNameLabel], s.shared.Cluster)}
}

// discovering lists the Stores whose models know all resources in the group of a definition.
func (p *Provider) discovering(definition event.Key) []event.Key {
	var keys []event.Key
	if p.concerns(definition) {
		for _, s := range p.state.shared.Stores.All() {
			if s.Key.Cluster == p.state.shared.Cluster && plan.Discovers(s.Value) {
				keys = append(keys, s.Key)
			}
		}
	}
	return keys
}

// concerns reports whether what a definition here defines could be discovered. Its name is <plural>.<group>.
func (p *Provider) concerns(definition event.Key) bool {
	_, group, _ := strings.Cut(definition.Name, ".")
	return definition.Cluster == p.state.shared.Cluster && p.discovery.Concerns(group)
}

// storesOf is the Store of the organization that a kcp workspace belongs to, if that is known.
func (s *state) storesOf(workspace string) []event.Key {
	i, known := s.accounts.Get(accountOf(workspace))
	if !known {
		return nil
	}
	return []event.Key{s.organization(i.Value)}
}

// organization is the Store of the organization that an account belongs to.
func (s *state) organization(i *corev1alpha1.AccountInfo) event.Key {
	return module.StoreKey(i.Spec.Organization.Name, cmp.Or(i.Spec.Organization.OriginCluster, s.shared.Cluster))
}

func accountOf(workspace string) event.Key {
	return event.Key{Cluster: workspace, GroupResource: kinds.AccountInfos().GroupResource, Name: corev1alpha1.AccountInfoName}
}

// madeFor lists the Stores that have AuthorizationModels for what a binding binds.
func (s *state) madeFor(b *plan.Binding) []event.Key {
	var keys []event.Key
	for _, m := range s.shared.ModelsFor(b.Status.ExportCluster + "/" + b.ExportName()) {
		keys = append(keys, module.StoreOf(m))
	}
	return unique(keys)
}

// boundTo lists the Stores of the workspaces that bind an export.
func (s *state) boundTo(cluster, export string) []event.Key {
	var keys []event.Key
	for _, b := range s.bindings.By(byExport, export) {
		if b.Value.Status.ExportCluster == cluster {
			keys = append(keys, s.storesOf(b.Key.Cluster)...)
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
