package infer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Holding is a role of a subject, and whence it comes.
type Holding struct {
	Subject           rbacv1.Subject
	Role              Role
	Explicit, Implied bool
	// Bindings are those that people made behind it, as [Binding.String] writes them, or generated
	// ones that are still there although nothing brings them about any more.
	Bindings []string
}

// Holders lists who has a role by the given bindings, sorted by subject.
func (rs *RuleSet) Holders(role Role, bindings []*Binding) []Holding {
	found := map[rbacv1.Subject]*Holding{}
	add := func(s rbacv1.Subject, binding string, explicit bool) {
		if found[s] == nil {
			found[s] = &Holding{Subject: s, Role: role}
		}
		found[s].add(binding, explicit)
	}
	for _, b := range bindings {
		if explicit, implied := rs.gives(b, role); explicit || implied {
			for s := range b.subjects() {
				add(s, b.String(), explicit)
			}
		}
	}
	for _, b := range bindings {
		if !b.Generated() || b.Role != role {
			continue
		}
		for s := range b.subjects() {
			if h := found[s]; h == nil || !h.by(b.Source) {
				add(s, b.Name, false)
			}
		}
	}
	return sorted(found, func(x, y Holding) int { return CompareSubjects(x.Subject, y.Subject) })
}

// gives tells how a binding that people made gives a role, if it does. Kubernetes honours what is
// being deleted until it has gone.
func (rs *RuleSet) gives(b *Binding, role Role) (explicit, implied bool) {
	if b.Generated() {
		return false, false
	}
	explicit = b.Role == role
	return explicit, !explicit && b.IsSource() && rs.Implies(b.Role, role)
}

// Effective lists what roles somebody has by the given bindings, sorted by role.
func (rs *RuleSet) Effective(who Identity, bindings []*Binding) []Holding {
	found := map[Role]*Holding{}
	add := func(role Role, name string, explicit bool) {
		if found[role] == nil {
			found[role] = &Holding{Role: role}
		}
		found[role].add(name, explicit)
	}
	var generated []*Binding
	for _, b := range bindings {
		if _, ok := who.In(b); !ok {
			continue
		}
		if b.Generated() {
			generated = append(generated, b)
			continue
		}
		add(b.Role, b.String(), true)
		if b.IsSource() {
			for _, role := range rs.Implied(b.Role) {
				add(role, b.Name, false)
			}
		}
	}
	for _, b := range generated {
		if h := found[b.Role]; h == nil || !h.by(b.Source) {
			add(b.Role, b.Name, false)
		}
	}
	return sorted(found, func(x, y Holding) int { return x.Role.Compare(y.Role) })
}

// by reports whether a binding is behind it.
func (h *Holding) by(binding string) bool {
	_, has := slices.BinarySearch(h.Bindings, binding)
	return has
}

func (h *Holding) add(binding string, explicit bool) {
	h.Explicit = h.Explicit || explicit
	h.Implied = h.Implied || !explicit
	if i, has := slices.BinarySearch(h.Bindings, binding); !has {
		h.Bindings = slices.Insert(h.Bindings, i, binding)
	}
}

func sorted[K comparable](found map[K]*Holding, compare func(x, y Holding) int) []Holding {
	list := make([]Holding, 0, len(found))
	for _, h := range found {
		list = append(list, *h)
	}
	slices.SortFunc(list, compare)
	return list
}

// CompareSubjects orders subjects by kind, namespace, name and group.
func CompareSubjects(a, b rbacv1.Subject) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name), strings.Compare(a.APIGroup, b.APIGroup))
}

// Identity is all that Kubernetes takes one subject for, by kind, namespace and name.
type Identity map[rbacv1.Subject]struct{}

// What Kubernetes itself makes of users.
const (
	serviceAccountPrefix = "system:serviceaccount:"
	allServiceAccounts   = "system:serviceaccounts"
	allAuthenticated     = "system:authenticated"
	allUnauthenticated   = "system:unauthenticated"
	anonymous            = "system:anonymous"
)

// Identify is the identity of a subject that is in the given groups: Kubernetes does not know who
// is in which, but for its own. Whoever is in a group is taken to be authenticated.
func Identify(subject rbacv1.Subject, groups []string) Identity {
	who, name := Identity{}, subject.Name
	groups = slices.Clone(groups)
	switch subject.Kind {
	case rbacv1.GroupKind:
		if groups = append(groups, name); strings.HasPrefix(name, allServiceAccounts+":") {
			groups = append(groups, allServiceAccounts)
		}
	case rbacv1.ServiceAccountKind:
		name = serviceAccountPrefix + subject.Namespace + ":" + name
		fallthrough
	default:
		who[rbacv1.Subject{Kind: rbacv1.UserKind, Name: name}] = struct{}{}
		if full, ok := strings.CutPrefix(name, serviceAccountPrefix); ok {
			namespace, account, _ := strings.Cut(full, ":")
			who[rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}] = struct{}{}
			groups = append(groups, allServiceAccounts, allServiceAccounts+":"+namespace)
		}
	}
	if name == anonymous && subject.Kind == rbacv1.UserKind {
		groups = append(groups, allUnauthenticated)
	}
	if !slices.Contains(groups, allUnauthenticated) {
		groups = append(groups, allAuthenticated)
	}
	for _, group := range groups {
		who[rbacv1.Subject{Kind: rbacv1.GroupKind, Name: group}] = struct{}{}
	}
	return who
}

// In finds the first subject of a binding that the identity is.
func (who Identity) In(b *Binding) (rbacv1.Subject, bool) {
	for s := range b.subjects() {
		if _, ok := who[rbacv1.Subject{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}]; ok {
			return s, true
		}
	}
	return rbacv1.Subject{}, false
}

// Reason is one way in which somebody has a role.
type Reason struct {
	// Source is the binding that people made, or a generated one that is still there although nothing
	// brings it about any more; Subject its entry.
	Source  *Binding
	Subject rbacv1.Subject
	// Path leads from the role of the binding to the one asked about; only that if the
	// binding grants it itself.
	Path []Role
}

// maxSearches bounds the roles whose paths are looked for to explain one.
const maxSearches = 1000

// Explain lists up to limit ways in which somebody has a role by the given bindings, shortest
// first, then by path and binding. More means that there are, or may be, others.
func (rs *RuleSet) Explain(who Identity, role Role, bindings []*Binding, limit int) (reasons []Reason, more bool) {
	trim := func() {
		slices.SortFunc(reasons, Reason.compare)
		if len(reasons) > limit {
			clear(reasons[limit:])
			reasons, more = reasons[:limit], true
		}
	}
	byRole := rs.entries(who, role, bindings)
	distance := rs.graph.Distances(role)
	near := slices.SortedFunc(maps.Keys(byRole), func(x, y Role) int {
		return cmp.Or(cmp.Compare(distance(x), distance(y)), x.Compare(y))
	})
	for i, r := range near {
		if i == maxSearches || len(reasons) == limit && len(reasons[limit-1].Path) <= distance(r) {
			return reasons, true
		}
		paths, others := [][]Role{{role}}, false
		if r != role {
			paths, others = rs.Paths(r, role, limit)
		}
		entries := byRole[r]
		slices.SortFunc(entries, func(x, y Reason) int { return strings.Compare(x.Source.String(), y.Source.String()) })
		for _, path := range paths {
			for _, e := range entries[:min(len(entries), limit+1)] {
				reasons = append(reasons, Reason{e.Source, e.Subject, path})
			}
		}
		more = more || others
		trim()
	}
	return reasons, more
}

// entries lists by their role the bindings that give somebody a role, without a path.
func (rs *RuleSet) entries(who Identity, role Role, bindings []*Binding) map[Role][]Reason {
	byRole, sources := map[Role][]Reason{}, map[string]struct{}{}
	for _, b := range bindings {
		if explicit, implied := rs.gives(b, role); !explicit && !implied {
			continue
		}
		if subject, ok := who.In(b); ok {
			byRole[b.Role] = append(byRole[b.Role], Reason{Source: b, Subject: subject})
			sources[b.String()] = struct{}{}
		}
	}
	for _, b := range bindings {
		if _, due := sources[b.Source]; due || !b.Generated() || b.Role != role {
			continue
		}
		if subject, ok := who.In(b); ok {
			byRole[role] = append(byRole[role], Reason{Source: b, Subject: subject})
		}
	}
	return byRole
}

func (r Reason) compare(other Reason) int {
	return cmp.Or(cmp.Compare(len(r.Path), len(other.Path)), slices.CompareFunc(r.Path, other.Path, Role.Compare),
		strings.Compare(r.Source.String(), other.Source.String()))
}
