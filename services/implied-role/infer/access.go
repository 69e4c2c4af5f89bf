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
	// Bindings are the explicit ones behind it, by name.
	Bindings []string
}

// Holders lists who has a role by the given bindings, sorted by subject.
func (rs *RuleSet) Holders(role Role, bindings []*Binding) []Holding {
	found := map[rbacv1.Subject]*Holding{}
	for _, binding := range bindings {
		explicit, implied := rs.gives(binding, role)
		if !explicit && !implied {
			continue
		}
		for _, subject := range binding.Subjects {
			if found[subject] == nil {
				found[subject] = &Holding{Subject: subject, Role: role}
			}
			found[subject].add(binding.Name, explicit)
		}
	}
	return sorted(found, func(x, y Holding) int { return CompareSubjects(x.Subject, y.Subject) })
}

// gives tells how a binding gives a role, if it does.
func (rs *RuleSet) gives(binding *Binding, role Role) (explicit, implied bool) {
	if !binding.Grants() {
		return false, false
	}
	explicit = binding.Role == role
	return explicit, !explicit && binding.IsSource() && rs.Implies(binding.Role, role)
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
	for _, binding := range bindings {
		if _, ok := who.In(binding.Subjects); !ok || !binding.Grants() {
			continue
		}
		add(binding.Role, binding.Name, true)
		if !binding.IsSource() {
			continue
		}
		for _, role := range rs.Implied(binding.Role) {
			add(role, binding.Name, false)
		}
	}
	return sorted(found, func(x, y Holding) int { return x.Role.Compare(y.Role) })
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

// Identity is all that Kubernetes takes one subject for.
type Identity map[rbacv1.Subject]struct{}

const serviceAccountPrefix = "system:serviceaccount:"

// Identify is the identity of a subject that is in the given groups: Kubernetes does not
// know who is in which, but for service accounts.
func Identify(subject rbacv1.Subject, groups []string) Identity {
	who := Identity{}
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
	}
	account, name, _ := strings.Cut(strings.TrimPrefix(subject.Name, serviceAccountPrefix), ":")
	switch {
	case subject.Kind == rbacv1.ServiceAccountKind:
		account, name = subject.Namespace, subject.Name
	case subject.Kind == rbacv1.UserKind && strings.HasPrefix(subject.Name, serviceAccountPrefix):
	default:
		account = ""
		who[rbacv1.Subject{Kind: subject.Kind, APIGroup: rbacv1.GroupName, Name: subject.Name}] = struct{}{}
	}
	if account != "" {
		who[rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account, Name: name}] = struct{}{}
		who[user(serviceAccountPrefix+account+":"+name)] = struct{}{}
		groups = append(slices.Clone(groups), "system:serviceaccounts", "system:serviceaccounts:"+account, "system:authenticated")
	}
	for _, group := range groups {
		who[rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group}] = struct{}{}
	}
	return who
}

// In finds the first of subjects that the identity is.
func (who Identity) In(subjects []rbacv1.Subject) (rbacv1.Subject, bool) {
	i := slices.IndexFunc(subjects, func(s rbacv1.Subject) bool {
		_, ok := who[s]
		return ok
	})
	if i < 0 {
		return rbacv1.Subject{}, false
	}
	return subjects[i], true
}

// Reason is one way in which somebody has a role.
type Reason struct {
	// Source is the explicit binding, Subject its entry.
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
		slices.SortFunc(entries, func(x, y Reason) int { return strings.Compare(x.Source.Name, y.Source.Name) })
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
	byRole := map[Role][]Reason{}
	for _, binding := range bindings {
		if explicit, implied := rs.gives(binding, role); !explicit && !implied {
			continue
		}
		if subject, ok := who.In(binding.Subjects); ok {
			byRole[binding.Role] = append(byRole[binding.Role], Reason{Source: binding, Subject: subject})
		}
	}
	return byRole
}

func (r Reason) compare(other Reason) int {
	return cmp.Or(cmp.Compare(len(r.Path), len(other.Path)), slices.CompareFunc(r.Path, other.Path, Role.Compare),
		strings.Compare(r.Source.Name, other.Source.Name))
}
