package plan

import (
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// MayDropModules reports whether the next model may lack an AuthorizationModel that the Store's status lists. A full
// list may leave some out.
func MayDropModules(in Input) bool {
	if len(in.Store.Status.Modules) >= MaxModules {
		return true
	}
	present := map[string]bool{}
	for _, m := range in.Modules {
		present[in.originOf(m).String()] = true
	}
	return slices.ContainsFunc(in.Store.Status.Modules, func(was corev1alpha1.ModuleStatus) bool {
		kind, _, _ := strings.Cut(was.Source, "/")
		carried := kind == model.AuthorizationModel.String() || kind == model.Policy.String()
		return carried && !present[was.Source]
	})
}

// DropsTypes reports whether the next model lacks a type of the latest one. ProtectedResources provide whole types.
func DropsTypes(in Input, obs Observed) bool {
	next := map[string]bool{}
	for _, t := range in.Merged.Model.GetTypeDefinitions() {
		next[t.GetType()] = true
	}
	return slices.ContainsFunc(obs.Latest.GetTypeDefinitions(), func(t *openfgav1.TypeDefinition) bool { return !next[t.GetType()] })
}
