package checker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// impliedRoleRules holds the roles that each role implies directly, by namespace.
type impliedRoleRules map[string]map[string][]string

func (r impliedRoleRules) addRule(rule unstructured.Unstructured) {
	namespace, edge := rule.GetNamespace(), []string{"spec", "inference_rule"}
	if r[namespace] == nil {
		r[namespace] = map[string][]string{}
	}
	parent := textField(rule, append(edge, "parent_role")...)
	r[namespace][parent] = append(r[namespace][parent], textField(rule, append(edge, "child_role")...))
}

// impliedRoles returns all roles that a role implies, sorted, without the role itself.
func (r impliedRoleRules) impliedRoles(namespace, role string) []string {
	seen := map[string]bool{}
	var follow func(string)
	follow = func(parent string) {
		for _, child := range r[namespace][parent] {
			if !seen[child] {
				seen[child] = true
				follow(child)
			}
		}
	}
	follow(role)
	delete(seen, role)
	var all []string
	for child := range seen {
		all = append(all, child)
	}
	slices.Sort(all)
	return all
}

func collectRules(s *ObjectSnapshot) impliedRoleRules {
	all := impliedRoleRules{}
	for _, rule := range s.UndeletedOfKind(workload.ImpliedRolesResource()) {
		all.addRule(rule)
	}
	return all
}

// checkImpliedRoles requires that the status of every rule lists all roles that its parent implies.
func checkImpliedRoles(_ context.Context, w *CheckedSystem) error {
	var errs []error
	all := collectRules(w.Snapshot)
	for _, rule := range w.Snapshot.ObjectsOfKind(workload.ImpliedRolesResource()) {
		parent := textField(rule, "spec", "inference_rule", "parent_role")
		children, _, _ := unstructured.NestedStringSlice(rule.Object, "status", "inferences", "child_roles")
		err := errors.Join(requireCondition(rule, "Accepted", true), requireCondition(rule, "Synced", true))
		if want := all.impliedRoles(rule.GetNamespace(), parent); !slices.Equal(children, want) {
			err = errors.Join(err, fmt.Errorf("status says that %s implies %v, want %v", parent, children, want))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("impliedroles %s/%s: %w", rule.GetNamespace(), rule.GetName(), err))
		}
	}
	return errors.Join(errs...)
}
