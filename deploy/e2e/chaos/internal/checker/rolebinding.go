package checker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

const managedBy = "app.kubernetes.io/managed-by"

// isCreatedByUser reports whether a user, not implied-role, created the RoleBinding.
func isCreatedByUser(b unstructured.Unstructured) bool {
	return b.GetLabels()[managedBy] != "implied-role"
}

// subjectNames returns the names of the subjects of a RoleBinding, sorted.
func subjectNames(b unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(b.Object, "subjects")
	var all []string
	for _, item := range list {
		if s, ok := item.(map[string]any); ok {
			all = append(all, fmt.Sprint(s["name"]))
		}
	}
	slices.Sort(all)
	return all
}

// checkRoleBindings requires exactly the RoleBindings that the explicit ones imply.
func checkRoleBindings(_ context.Context, w *CheckedSystem) error {
	is, want := map[string]int{}, map[string]int{}
	all := collectRules(w.Snapshot)
	for _, b := range w.Snapshot.ObjectsOfKind(workload.RoleBindingResource()) {
		namespace := b.GetNamespace()
		if !slices.Contains(workload.NamespaceNames(), namespace) {
			continue
		}
		role, who := textField(b, "roleRef", "name"), strings.Join(subjectNames(b), ",")
		if !isCreatedByUser(b) {
			source := ""
			for _, owner := range b.GetOwnerReferences() {
				source = owner.Name
			}
			is[fmt.Sprintf("%s/%s: %s for %s", namespace, source, role, who)]++
			continue
		}
		for _, child := range all.impliedRoles(namespace, role) {
			if who != "" {
				want[fmt.Sprintf("%s/%s: %s for %s", namespace, b.GetName(), child, who)]++
			}
		}
	}
	return compareMaps("RoleBindings that follow", is, want)
}
