package plan

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// AfterPlan returns the input as it will be once a provider's plan has been carried out.
func (in Input) AfterPlan(p moduleplan.Plan, now metav1.Time) Input {
	find := func(name string) int {
		return slices.IndexFunc(in.Modules, func(m ModelObject) bool { return m.Key.Cluster == in.Key.Cluster && m.Key.Name == name })
	}
	in.Modules = slices.Clone(in.Modules)
	for _, o := range p.Apply {
		i := find(o.Name)
		if i < 0 {
			key := event.Key{Cluster: in.Key.Cluster, GroupResource: kinds.AuthorizationModels().GroupResource, Name: o.Name}
			o.CreationTimestamp = now
			in.Modules = append(in.Modules, ModelObject{Change: event.Change{Key: key}, Value: &o})
			continue
		}
		changed := in.Modules[i].Value.DeepCopy()
		changed.Spec, changed.Annotations = o.Spec, map[string]string{}
		maps.Copy(changed.Annotations, in.Modules[i].Value.Annotations)
		maps.Copy(changed.Annotations, o.Annotations)
		in.Modules[i].Value = changed
	}
	for _, name := range p.Delete {
		if i := find(name); i >= 0 {
			in.Modules = slices.Delete(in.Modules, i, i+1)
		}
	}
	return in
}
