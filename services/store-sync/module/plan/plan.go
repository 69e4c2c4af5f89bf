// Package plan holds the decisions that all providers share: the AuthorizationModels that carry modules, and the status
// of an object for its module. It does no I/O and reads no clock.
package plan

import (
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// Plan lists the changes to the AuthorizationModels that carry one provider's modules in a Store.
type Plan struct {
	// Apply lists the objects to create or change, with only the fields that this service owns.
	Apply []corev1alpha1.AuthorizationModel
	// Delete lists names.
	Delete []string
}

// DecideChanges plans the changes from the existing objects to the desired ones. It deletes an existing object that is
// not desired, unless keep returns true. An object in deletion is created again only once it is gone.
func DecideChanges(has []*corev1alpha1.AuthorizationModel, desired []corev1alpha1.AuthorizationModel,
	keep func(*corev1alpha1.AuthorizationModel) bool,
) Plan {
	var p Plan
	known, wanted := map[string]*corev1alpha1.AuthorizationModel{}, map[string]bool{}
	for _, old := range has {
		known[old.Name] = old
	}
	for _, o := range desired {
		wanted[o.Name] = true
		if old := known[o.Name]; old == nil || old.DeletionTimestamp == nil && !old.MatchesDesired(&o) {
			p.Apply = append(p.Apply, o)
		}
	}
	for _, old := range has {
		if !wanted[old.Name] && old.DeletionTimestamp == nil && !keep(old) {
			p.Delete = append(p.Delete, old.Name)
		}
	}
	slices.Sort(p.Delete)
	return p
}
