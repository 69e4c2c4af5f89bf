package iam_test

import (
	"fmt"
	"testing"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// The owner of a namespace can create any number of roles that each inherit as many roles as the schema allows.
func BenchmarkEffectivePermissionsInCycles(b *testing.B) {
	const many, most = 1000, 100
	roles := map[string]*iamv1alpha1.Role{}
	for i := range many {
		r := &iamv1alpha1.Role{}
		r.Namespace, r.Name, r.Spec.IncludedPermissions = "one", fmt.Sprint("role-", i), []string{"a/trees.get"}
		for j := range most {
			r.Spec.InheritedRoles = append(r.Spec.InheritedRoles, iamv1alpha1.ScopedRoleReference{Name: fmt.Sprint("role-", (i+j+1)%many)})
		}
		roles[r.Name] = r
	}
	o := &iam.DeclaredObjects{Registry: iam.NewRegistry(nil), Role: func(_, name string) *iamv1alpha1.Role { return roles[name] }}
	for b.Loop() {
		o.Inheritance = new(iam.InheritanceCache) // As after a change of one role.
		for _, r := range roles {
			if n := len(o.EffectivePermissions(r).All); n != 1 {
				b.Fatalf("it gives %d permissions", n)
			}
		}
	}
}
