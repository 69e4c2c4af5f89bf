package decide

import (
	"cmp"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// role is one that is declared, or that a binding names.
type role struct {
	Ref

	declared bool
	included []string
	inherits []Ref
	// effective are the permissions that it gives, those of all that it inherits included.
	effective bits
	// grants are how many name it.
	grants int
}

// SetRole tells of a role.
func (x *Index) SetRole(namespace, name string, declared *iamv1alpha1.Role) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.role(Ref{namespace, name})
	for _, inherited := range r.inherits {
		x.heirs.remove(inherited, r.Ref)
	}
	r.declared, r.included, r.inherits = alive(declared), nil, nil
	if r.declared {
		r.included = declared.Spec.IncludedPermissions
		for _, ref := range declared.Spec.InheritedRoles {
			inherited := Ref{cmp.Or(ref.Namespace, namespace), ref.Name}
			r.inherits = append(r.inherits, inherited)
			x.heirs.add(inherited, r.Ref)
		}
	}
	x.inherit([]*role{r})
	x.releaseRole(r)
}

func (x *Index) role(ref Ref) *role {
	r := x.roles[ref]
	if r == nil {
		r = &role{Ref: ref}
		x.roles[ref] = r
	}
	return r
}

func (x *Index) releaseRole(r *role) {
	if !r.declared && r.grants == 0 {
		delete(x.roles, r.Ref)
	}
}

// inherit works out anew what roles give that have changed, and what all give that inherit them.
// Roles may inherit each other: each starts with its own permissions, and hands on what it gets.
func (x *Index) inherit(roles []*role) {
	seen := map[*role]bool{}
	for _, r := range roles {
		seen[r] = true
	}
	for i := 0; i < len(roles); i++ {
		roles[i].effective = x.bitsOf(roles[i].included)
		for heir := range x.heirs[roles[i].Ref] {
			if h := x.roles[heir]; !seen[h] {
				seen[h] = true
				roles = append(roles, h)
			}
		}
	}
	for len(roles) > 0 {
		r, grew := roles[0], false
		roles = roles[1:]
		for _, ref := range r.inherits {
			if inherited := x.roles[ref]; inherited != nil {
				grew = r.effective.add(inherited.effective) || grew
			}
		}
		for heir := range x.heirs[r.Ref] {
			if grew {
				roles = append(roles, x.roles[heir])
			}
		}
	}
}
