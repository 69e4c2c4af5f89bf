package authz

import (
	"maps"
	"slices"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/bitset"
	"github.com/entail-dev/entail/services/internal/iam"
)

// registeredKind is a kind that a ProtectedResource registers.
type registeredKind struct {
	typ string
	// grantable holds the permissions that can be held on its objects.
	grantable bitset.Set
	parents   map[string]*registeredKind
}

// isBelowType reports whether objects of a type may be ancestors of objects of the kind k.
func (k *registeredKind) isBelowType(typ string) bool {
	return k.parents[typ] != nil || k.isBelowUnvisited(typ, map[*registeredKind]bool{})
}

// isBelowUnvisited implements isBelowType. It skips the kinds in visited, so that it visits each kind once.
func (k *registeredKind) isBelowUnvisited(typ string, visited map[*registeredKind]bool) bool {
	if visited[k] {
		return false
	}
	visited[k] = true
	for _, parent := range k.parents {
		if parent.typ == typ || parent.isBelowUnvisited(typ, visited) {
			return true
		}
	}
	return false
}

// SetProtectedResource adds, replaces or removes a ProtectedResource. It then validates all ProtectedResources again,
// because the validity of one depends on the others.
func (x *Index) SetProtectedResource(name string, p *iamv1alpha1.ProtectedResource) {
	x.mu.Lock()
	defer x.mu.Unlock()
	was := x.resources[name]
	if isAlive(p) {
		x.resources[name] = p
	} else {
		delete(x.resources, name)
	}
	if same := was == nil && !isAlive(p) || was != nil && isAlive(p) && iam.EqualForRegistration(was, p); !x.loading && !same {
		x.rebuildRegistry()
	}
}

// rebuildRegistry validates all ProtectedResources and computes the permissions of all roles again.
func (x *Index) rebuildRegistry() {
	x.registry = iam.NewRegistry(slices.Collect(maps.Values(x.resources)))
	kinds := x.registry.Kinds()
	x.kinds, x.permissions, x.names, x.owners = map[string]*registeredKind{}, map[string]int{}, nil, nil
	for _, k := range kinds {
		x.kinds[k.Type] = &registeredKind{typ: k.Type, parents: map[string]*registeredKind{}}
		for _, permission := range k.Permissions {
			x.permissions[permission], x.names, x.owners = len(x.names), append(x.names, permission), append(x.owners, k.Type)
		}
	}
	for _, k := range kinds {
		x.kinds[k.Type].grantable = x.permissionSetOf(k.GrantablePermissions())
		for _, parent := range k.Parents {
			x.kinds[k.Type].parents[parent.Type] = x.kinds[parent.Type]
		}
	}
	x.computeRolePermissions(slices.Collect(maps.Values(x.roles)))
}

// Registry returns the registry of all ProtectedResources.
func (x *Index) Registry() *iam.Registry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.registry
}

// permissionSetOf returns the set of the permissions that are registered.
func (x *Index) permissionSetOf(permissions []string) bitset.Set {
	b := bitset.New(len(x.permissions))
	for _, permission := range permissions {
		if n, known := x.permissions[permission]; known {
			b.Add(n)
		}
	}
	return b
}

// permissionNames lists the permissions in b and with, but not in without.
func (x *Index) permissionNames(b, with, without bitset.Set) []string {
	var names []string
	for n := range b.All() {
		if with.Has(n) && !without.Has(n) {
			names = append(names, x.names[n])
		}
	}
	slices.Sort(names)
	return names
}
