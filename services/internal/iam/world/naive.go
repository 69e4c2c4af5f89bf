package world

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// NaiveAuthorizer decides requests directly from the declared objects. It shares no code with the product.
type NaiveAuthorizer struct {
	world *World

	// kinds holds the registered kinds. parents holds the parent kinds of each.
	kinds   map[string]bool
	parents map[string][]string
	// owner maps each permission to its kind.
	owner map[string]string
}

// NewNaiveAuthorizer returns an authorizer for the current state of a world.
func NewNaiveAuthorizer(w *World) *NaiveAuthorizer {
	n := &NaiveAuthorizer{w, map[string]bool{}, map[string][]string{}, map[string]string{}}
	alive := slices.DeleteFunc(slices.Clone(w.Resources), func(p *iamv1alpha1.ProtectedResource) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(alive, func(a, b *iamv1alpha1.ProtectedResource) int {
		return cmp.Or(claimRank(a)-claimRank(b), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	var first []*iamv1alpha1.ProtectedResource
	for _, p := range alive {
		typ := claimedKind(p)
		taken := slices.ContainsFunc(alive, func(other *iamv1alpha1.ProtectedResource) bool {
			return other != p && claimRank(p) == 2 && recordedKind(other) == typ
		})
		if n.kinds[typ] || taken || isOverBudget(p) {
			continue
		}
		n.kinds[typ], first = true, append(first, p)
		for _, verb := range p.Spec.Permissions {
			separator := "."
			if strings.Contains(verb, ".") {
				separator = "/"
			}
			n.owner[p.Spec.ServiceRef.Name+"/"+p.Spec.Plural+separator+verb] = typ
		}
	}
	n.linkRecordedParents(first)
	// A link recorded in a status counts in the search for cycles, even if the spec no longer has it.
	with := &NaiveAuthorizer{parents: map[string][]string{}}
	for _, p := range alive {
		if p.Status.Registered != nil {
			with.parents[recordedKind(p)] = append(with.parents[recordedKind(p)], p.Status.Registered.Parents...)
		}
	}
	n.linkNewParents(with, first)
	return n
}

// linkRecordedParents adds the links that statuses record, in order.
func (n *NaiveAuthorizer) linkRecordedParents(first []*iamv1alpha1.ProtectedResource) {
	for _, p := range first {
		for _, ref := range p.Spec.ParentResources {
			parent := ref.APIGroup + "/" + ref.Kind
			if n.kinds[parent] && hasRecordedParent(p, parent) && !n.isAtOrAbove(claimedKind(p), parent) {
				n.parents[claimedKind(p)] = append(n.parents[claimedKind(p)], parent)
			}
		}
	}
}

// linkNewParents adds the new links, except links that close a cycle with a recorded or added link.
func (n *NaiveAuthorizer) linkNewParents(with *NaiveAuthorizer, first []*iamv1alpha1.ProtectedResource) {
	for _, p := range first {
		for _, ref := range p.Spec.ParentResources {
			parent := ref.APIGroup + "/" + ref.Kind
			if !n.kinds[parent] || hasRecordedParent(p, parent) || n.isAtOrAboveWith(with, claimedKind(p), parent) {
				continue
			}
			n.parents[claimedKind(p)] = append(n.parents[claimedKind(p)], parent)
		}
	}
}

// isAtOrAboveWith reports whether above equals below or is above it, by the links of n and with together.
func (n *NaiveAuthorizer) isAtOrAboveWith(with *NaiveAuthorizer, above, below string) bool {
	reached := []string{below}
	for i := 0; i < len(reached); i++ {
		for _, parent := range slices.Concat(n.parents[reached[i]], with.parents[reached[i]]) {
			if !slices.Contains(reached, parent) {
				reached = append(reached, parent)
			}
		}
	}
	return slices.Contains(reached, above)
}

func claimedKind(p *iamv1alpha1.ProtectedResource) string {
	return p.Spec.ServiceRef.Name + "/" + p.Spec.Kind
}

// recordedKind returns the kind in the recorded registration, or "".
func recordedKind(p *iamv1alpha1.ProtectedResource) string {
	if p.Status.Registered == nil {
		return ""
	}
	return p.Status.Registered.Group + "/" + p.Status.Registered.Kind
}

func hasRecordedParent(p *iamv1alpha1.ProtectedResource, parent string) bool {
	return claimRank(p) < 2 && slices.Contains(p.Status.Registered.Parents, parent)
}

// claimRank returns 0 for an unchanged registration, 1 for a registration with a changed spec, and 2 for no
// registration.
func claimRank(p *iamv1alpha1.ProtectedResource) int {
	if recordedKind(p) != claimedKind(p) {
		return 2
	}
	return min(1, int(p.Generation-p.Status.Registered.Generation))
}

// isOverBudget reports whether the status reports that the model has no room.
func isOverBudget(p *iamv1alpha1.ProtectedResource) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == "Registered" && c.Status == "False" && c.Reason == "LimitExceeded"
	})
}

// isAtOrAbove reports whether above equals below or is an ancestor of it.
func (n *NaiveAuthorizer) isAtOrAbove(above, below string) bool {
	return above == below || slices.ContainsFunc(n.parents[below], func(p string) bool { return n.isAtOrAbove(above, p) })
}

// bindingScope is one object, or all objects of a kind if name is empty.
type bindingScope struct{ typ, namespace, name string }

// Allows reports whether the declared objects allow a request.
func (n *NaiveAuthorizer) Allows(q Request) bool {
	if kind, known := n.owner[q.Permission]; !known || !n.kinds[q.Type] || !n.isAtOrAbove(q.Type, kind) {
		return false
	}
	if n.isRequesterInactive(q) {
		return false
	}
	if q.RequireExists && n.targetAt(bindingScope{q.Type, q.Namespace, q.Name}) == nil {
		return false
	}
	object := bindingScope{q.Type, q.Namespace, q.Name}
	places := n.scopesOf(object)
	if above := (bindingScope{q.ParentType, "", q.ParentName}); n.isRequestParentUsed(object, above) {
		places = append(places, n.scopesOf(above)...)
	}
	return slices.ContainsFunc(n.world.Bindings, func(b *iamv1alpha1.PolicyBinding) bool {
		return b.DeletionTimestamp == nil && n.hasPermission(b, q.Permission) && n.matchesScope(b, places) &&
			slices.ContainsFunc(b.Spec.Subjects, func(s iamv1alpha1.Subject) bool { return n.matchesSubject(q, s) })
	})
}

// isRequestParentUsed reports whether the parent in a request counts: the object must be unknown, and its kind must be
// below the parent's kind.
func (n *NaiveAuthorizer) isRequestParentUsed(object, above bindingScope) bool {
	return object.typ != above.typ && n.kinds[above.typ] && n.isAtOrAbove(above.typ, object.typ) && (object.name == "" || n.targetAt(object) == nil)
}

// scopesOf returns the scopes whose bindings apply to p: p itself, its kind, its ancestors and their kinds.
func (n *NaiveAuthorizer) scopesOf(p bindingScope) []bindingScope {
	all := []bindingScope{{typ: p.typ}}
	var owners []bindingScope
	namespace := p.namespace
	t := n.targetAt(p)
	if p.name != "" && (t != nil || n.world.IsTrusted(p.typ)) {
		all = append(all, p)
	}
	if t != nil && p.name != "" {
		namespace, owners = t.Namespace, n.ownersOf(t)
	}
	if namespace != "" {
		owners = append(owners, bindingScope{"core.miloapis.com/Namespace", "", namespace})
	}
	for _, o := range owners {
		if slices.Contains(n.parents[p.typ], o.typ) {
			all = append(all, n.scopesOf(o)...)
		}
	}
	return all
}

// ownersOf returns the owners of an object. A project belongs to an organization only if spec and status name the same
// one. Owner references of a project to organizations are ignored.
func (n *NaiveAuthorizer) ownersOf(t *TargetObject) (owners []bindingScope) {
	organization := bindingScope{Organization, "", t.Organization}
	o := n.targetAt(organization)
	belongs := t.Type == Project && o != nil && t.Recorded != nil && t.Recorded.Name == o.Name && t.Recorded.UID == string(o.UID)
	for _, ref := range t.OwnerReferences {
		typ := ref.APIVersion[:max(0, strings.LastIndex(ref.APIVersion, "/"))]
		typ = cmp.Or(typ, "core.miloapis.com") + "/" + ref.Kind
		if t.Type == Project && typ == Organization {
			// An owner reference with another UID than the status means that the project has no organization.
			if o != nil && ref.Name == t.Organization {
				belongs = belongs && ref.UID == o.UID
			}
			continue
		}
		for _, ns := range []string{"", t.Namespace} {
			owner := bindingScope{typ, ns, ref.Name}
			if o := n.targetAt(owner); o != nil && o.UID == ref.UID {
				owners = append(owners, owner)
			}
		}
	}
	if belongs {
		owners = append(owners, organization)
	}
	return owners
}

func (n *NaiveAuthorizer) targetAt(p bindingScope) *TargetObject {
	return FindFirst(n.world.Targets, func(t *TargetObject) bool {
		return t.DeletionTimestamp == nil && t.Type == p.typ && t.Namespace == p.namespace && t.Name == p.name
	})
}

func (n *NaiveAuthorizer) matchesScope(b *iamv1alpha1.PolicyBinding, places []bindingScope) bool {
	if kind := b.Spec.ResourceSelector.ResourceKind; kind != nil {
		typ := cmp.Or(kind.APIGroup, "core.miloapis.com") + "/" + kind.Kind
		return n.kinds[typ] && slices.Contains(places, bindingScope{typ: typ})
	}
	ref := b.Spec.ResourceSelector.ResourceRef
	on := bindingScope{cmp.Or(ref.APIGroup, "core.miloapis.com") + "/" + ref.Kind, ref.Namespace, ref.Name}
	t := n.targetAt(on)
	meant := t != nil && string(t.UID) == ref.UID || t == nil && n.world.IsTrusted(on.typ)
	return n.kinds[on.typ] && meant && slices.Contains(places, on)
}

func (n *NaiveAuthorizer) hasPermission(b *iamv1alpha1.PolicyBinding, permission string) bool {
	seen := map[string]bool{}
	var has func(namespace, name string) bool
	has = func(namespace, name string) bool {
		r := FindFirst(n.world.Roles, func(r *iamv1alpha1.Role) bool { return r.Namespace == namespace && r.Name == name })
		if r == nil || r.DeletionTimestamp != nil || seen[namespace+"/"+name] {
			return false
		}
		seen[namespace+"/"+name] = true
		return slices.Contains(r.Spec.IncludedPermissions, permission) ||
			slices.ContainsFunc(r.Spec.InheritedRoles, func(i iamv1alpha1.ScopedRoleReference) bool {
				return has(cmp.Or(i.Namespace, namespace), i.Name)
			})
	}
	return has(cmp.Or(b.Spec.RoleRef.Namespace, b.Namespace), b.Spec.RoleRef.Name)
}

// matchesSubject reports whether the requester matches a subject.
func (n *NaiveAuthorizer) matchesSubject(q Request, s iamv1alpha1.Subject) bool {
	switch {
	case s.Kind == "User":
		return q.User == s.Name && n.isActiveUser(s.Name, s.UID)
	case s.Kind == "ServiceAccount" && s.Namespace != "":
		return q.Account == s.UID
	case s.Kind == "ServiceAccount":
		a := FindFirst(n.world.Accounts, func(a *iamv1alpha1.ServiceAccount) bool { return a.Name == s.Name })
		return a != nil && a.DeletionTimestamp == nil && string(a.UID) == s.UID && a.Spec.State != iamv1alpha1.Inactive && q.Account == s.UID
	case strings.Contains(s.Name, ":"):
		return slices.Contains(q.Groups, s.Name)
	}
	g := FindFirst(n.world.Groups, func(g *iamv1alpha1.Group) bool { return g.Namespace == s.Namespace && g.Name == s.Name })
	if g == nil || g.DeletionTimestamp != nil || string(g.UID) != s.UID || q.User == "" {
		return false
	}
	return slices.ContainsFunc(n.world.Memberships, func(m *iamv1alpha1.GroupMembership) bool {
		in := iamv1alpha1.GroupReference{Namespace: g.Namespace, Name: g.Name}
		if m.DeletionTimestamp != nil || m.Spec.GroupRef != in || m.Spec.UserRef.Name != q.User {
			return false
		}
		return m.Status.User != nil && m.Status.User.Name == q.User && n.isActiveUser(q.User, m.Status.User.UID)
	})
}

// isRequesterInactive reports whether the requester is deactivated. Its groups then give no permissions either.
func (n *NaiveAuthorizer) isRequesterInactive(q Request) bool {
	u := FindFirst(n.world.Users, func(u *iamv1alpha1.User) bool { return u.Name == q.User && q.User != "" })
	a := FindFirst(n.world.Accounts, func(a *iamv1alpha1.ServiceAccount) bool { return string(a.UID) == q.Account })
	return u != nil && u.Status.State == iamv1alpha1.Inactive || a != nil && a.Spec.State == iamv1alpha1.Inactive
}

func (n *NaiveAuthorizer) isActiveUser(name, uid string) bool {
	u := FindFirst(n.world.Users, func(u *iamv1alpha1.User) bool { return u.Name == name })
	return u != nil && u.DeletionTimestamp == nil && string(u.UID) == uid && u.Status.State != iamv1alpha1.Inactive
}
