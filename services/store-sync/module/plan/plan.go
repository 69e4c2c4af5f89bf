// Package plan is what the plans of all doors share: which AuthorizationModels carry modules, and
// what the status of an object says of its module. It does no I/O and reads no clock.
package plan

import (
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

// Plan is what to do about the AuthorizationModels that carry one provider's modules in a Store.
type Plan struct {
	// Apply are the objects to make or change, with what they must hold and nothing else.
	Apply []corev1alpha1.AuthorizationModel
	// Delete are names.
	Delete []string
}

// Compare plans from what is there to what is desired. What is there and not desired is deleted
// unless keep says otherwise. One in deletion must be gone before it is made again.
func Compare(has []*corev1alpha1.AuthorizationModel, desired []corev1alpha1.AuthorizationModel,
	keep func(*corev1alpha1.AuthorizationModel) bool,
) Plan {
	var p Plan
	known, wanted := map[string]*corev1alpha1.AuthorizationModel{}, map[string]bool{}
	for _, old := range has {
		known[old.Name] = old
	}
	for _, o := range desired {
		wanted[o.Name] = true
		if old := known[o.Name]; old == nil || old.DeletionTimestamp == nil && !old.Holds(&o) {
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
