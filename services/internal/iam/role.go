package iam

import (
	"cmp"
	"slices"
	"sync"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/clip"
)

// mostIdle is how many names are kept of what gives nothing, maxIdle how much of each: whoever owns a namespace may name as many
// permissions and roles as they like there, and let as many roles inherit them.
const (
	mostIdle = 100
	maxIdle  = 256
)

// RolePermissions are what a role gives. Of what gives nothing the first names are told.
type RolePermissions struct {
	// All are its own and those of the roles that it inherits, sorted.
	All []string
	// Unknown are those of them that no ProtectedResource has. They give nothing.
	Unknown []string
	// Missing are inherited roles that are not there, as namespace/name.
	Missing []string
}

// Effective are the permissions that a role gives, those of all that it inherits included. Roles
// may inherit each other.
func (o *Objects) Effective(role *iamv1alpha1.Role) RolePermissions {
	given := cmp.Or(o.Inheritance, new(Inheritance)).of(o, role)
	p := RolePermissions{All: given.permissions, Missing: given.missing}
	for _, permission := range p.All {
		if _, known := o.Registry.Relation(permission); !known {
			p.Unknown = append(p.Unknown, permission)
		}
	}
	return p
}

// Inheritance remembers what roles give, as long as no role changes. Roles that inherit each other are gone through once,
// however many ways there are: somebody may make as many of both as they like. The zero value remembers nothing yet.
type Inheritance struct {
	mu sync.Mutex
	// registry is the one by which it is known what gives nothing.
	registry *Registry
	found    map[string]*inherited
}

// inherited is what all roles give that inherit each other, on whatever way round.
type inherited struct{ permissions, missing []string }

// of is what a role gives.
func (i *Inheritance) of(o *Objects, role *iamv1alpha1.Role) *inherited {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.found == nil || i.registry != o.Registry {
		i.registry, i.found = o.Registry, map[string]*inherited{}
	}
	name := nameOf(role)
	if i.found[name] == nil {
		w := walk{objects: o, found: i.found, at: map[string]int{}}
		w.visit(name, role)
	}
	return i.found[name]
}

func nameOf(role *iamv1alpha1.Role) string { return role.Namespace + "/" + role.Name }

// walk goes through the roles that one inherits.
type walk struct {
	objects *Objects
	// found is what is known of roles that are not on the path.
	found map[string]*inherited
	// at is where on the path a role is, from one on.
	at   map[string]int
	path []*step
}

// step is a role on the path, with what is known of it so far.
type step struct {
	name string
	inherited

	seen map[*inherited]bool
}

// visit finds what a role gives, unless it is one with roles before it on the path: the first of these is returned then.
func (w *walk) visit(name string, role *iamv1alpha1.Role) (first int) {
	s := &step{name: name, seen: map[*inherited]bool{}}
	for _, permission := range role.Spec.IncludedPermissions {
		s.permissions = append(s.permissions, w.objects.short(permission))
	}
	w.path = append(w.path, s)
	own := len(w.path)
	w.at[name], first = own, own
	for _, ref := range role.Spec.InheritedRoles {
		namespace := cmp.Or(ref.Namespace, role.Namespace)
		other := namespace + "/" + ref.Name
		switch r := w.objects.role(namespace, ref.Name); {
		case r == nil:
			s.missing = append(s.missing, clip.Text(other, maxIdle))
			continue
		case w.at[other] > 0:
			first = min(first, w.at[other])
		case w.found[other] == nil:
			first = min(first, w.visit(other, r))
		}
		s.take(w.found[other])
	}
	if first == own {
		w.close(w.path[own-1:])
		w.path = w.path[:own-1]
	}
	return first
}

// take adds what is known of a role that is inherited; of one on the path nothing is yet.
func (s *step) take(is *inherited) {
	if is != nil && !s.seen[is] {
		s.seen[is] = true
		s.permissions, s.missing = append(s.permissions, is.permissions...), append(s.missing, is.missing...)
	}
}

// close says of roles that inherit each other what all of them give.
func (w *walk) close(roles []*step) {
	all := &inherited{}
	for _, s := range roles {
		all.permissions, all.missing = append(all.permissions, s.permissions...), append(all.missing, s.missing...)
		w.found[s.name] = all
		delete(w.at, s.name)
	}
	all.permissions, all.missing = w.objects.useful(distinct(all.permissions)), distinct(all.missing)
	all.missing = slices.Clone(all.missing[:min(mostIdle, len(all.missing))])
}

// short cuts a permission that is too long to tell, unless somebody registers it.
func (o *Objects) short(permission string) string {
	if len(permission) > maxIdle {
		if _, known := o.Registry.Relation(permission); !known {
			return clip.Text(permission, maxIdle)
		}
	}
	return permission
}

// useful leaves out permissions that nobody registers, but for the first.
func (o *Objects) useful(permissions []string) []string {
	idle := 0
	return slices.Clone(slices.DeleteFunc(permissions, func(permission string) bool {
		_, known := o.Registry.Relation(permission)
		if !known {
			idle++
		}
		return !known && idle > mostIdle
	}))
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// roleTuples give everybody who has the role its permissions.
func (o *Objects) roleTuples(role *iamv1alpha1.Role) []Tuple {
	var tuples []Tuple
	for _, permission := range o.Effective(role).All {
		if relation, known := o.Registry.Relation(permission); known {
			tuples = append(tuples, Tuple{UserType + ":*", relation, RoleObject(role)})
		}
	}
	return tuples
}
