package plan

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// ModelsInput holds everything that the AuthorizationModels of one Store depend on.
type ModelsInput struct {
	Template ModuleTemplate
	// Wanted lists the modules that APIs need in this Store, in any order.
	Wanted []WantedModel
	// Unsure holds the exports, as cluster/name, with unknown needs. Their AuthorizationModels are not deleted.
	Unsure map[string]bool
	// Has lists the AuthorizationModels that were generated for this Store before.
	Has []*corev1alpha1.AuthorizationModel
	// Taken reports whether an AuthorizationModel of a name exists.
	Taken func(name string) bool
}

// ModelsPlan lists the AuthorizationModels to apply and to delete.
type ModelsPlan struct {
	moduleplan.Plan

	// Unnamed holds the resources whose AuthorizationModel can have no name, each with the reason.
	Unnamed map[APIResource]string
}

// DecideModels plans the actions from the existing AuthorizationModels to the wanted ones. The order of neither
// matters. An AuthorizationModel keeps its name and all fields that others set.
func DecideModels(in ModelsInput) ModelsPlan {
	p := ModelsPlan{Unnamed: map[APIResource]string{}}
	var desired []corev1alpha1.AuthorizationModel
	has, named := firstModelByResource(in.Has), map[string]bool{}
	taken := func(name string) bool { return named[name] || in.Taken(name) }
	for _, w := range distinctWantedModels(in.Wanted) {
		object := in.desiredModel(w)
		if old := has[w.Resource.String()]; old != nil {
			object.Name = old.Name
		} else if object.Name = w.firstFreeName(taken); object.Name == "" {
			p.Unnamed[w.Resource] = fmt.Sprintf("no AuthorizationModel can be created for it: each of the names %q is taken or too long", w.candidateNames())
			continue
		}
		named[object.Name] = true
		desired = append(desired, object)
	}
	p.Plan = moduleplan.DecideChanges(in.Has, desired, func(old *corev1alpha1.AuthorizationModel) bool {
		return in.Unsure[old.Annotations[corev1alpha1.ExportAnnotation]]
	})
	return p
}

// distinctWantedModels returns the first entry for each resource, in order of resource and export.
func distinctWantedModels(wanted []WantedModel) []WantedModel {
	sorted := slices.SortedFunc(slices.Values(wanted), func(a, b WantedModel) int {
		return cmp.Or(a.Resource.Compare(b.Resource), cmp.Compare(a.Export, b.Export))
	})
	return slices.CompactFunc(sorted, func(a, b WantedModel) bool { return a.Resource.String() == b.Resource.String() })
}

// firstModelByResource returns the first AuthorizationModel by name for each resource.
func firstModelByResource(objects []*corev1alpha1.AuthorizationModel) map[string]*corev1alpha1.AuthorizationModel {
	found := map[string]*corev1alpha1.AuthorizationModel{}
	for _, o := range objects {
		r := o.Annotations[corev1alpha1.ResourceAnnotation]
		if known := found[r]; known == nil || o.Name < known.Name {
			found[r] = o
		}
	}
	return found
}

// candidateNames returns the possible names of the AuthorizationModel. The one without the group comes first; the other is for a
// resource of the same plural in another group.
func (w WantedModel) candidateNames() []string {
	plural, group := w.Resource.Plural, cmp.Or(w.Resource.Group, coreGroup)
	return []string{plural + "-" + w.Store.Name, plural + "." + group + "-" + w.Store.Name}
}

// firstFreeName returns the first valid name that is not taken, or "".
func (w WantedModel) firstFreeName(taken func(string) bool) string {
	for _, name := range w.candidateNames() {
		if len(validation.IsDNS1123Subdomain(name)) == 0 && !taken(name) {
			return name
		}
	}
	return ""
}

// desiredModel returns the desired AuthorizationModel without a name. If no module is possible for the resource, the object
// carries the annotation that rejects it.
func (in ModelsInput) desiredModel(w WantedModel) corev1alpha1.AuthorizationModel {
	dsl, err := in.Template.RenderModule(w.Resource)
	o := corev1alpha1.AuthorizationModel{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1alpha1.ResourceAnnotation: w.Resource.String()}},
		Spec:       corev1alpha1.AuthorizationModelSpec{StoreRef: w.Store, Model: dsl},
	}
	if w.Export != "" {
		o.Annotations[corev1alpha1.ExportAnnotation] = w.Export
	}
	if err != nil {
		o.Annotations[corev1alpha1.RejectedAnnotation] = fmt.Sprintf("there can be no module for %s: %v", w.Resource, err)
		o.Spec.Model = "# " + o.Annotations[corev1alpha1.RejectedAnnotation] + "\n"
	}
	return o
}
