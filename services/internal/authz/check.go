package authz

import "github.com/entail-dev/entail/services/internal/iam"

// ToOpenFGACheck converts a query to a check for OpenFGA. It adds the contextual tuples that the index holds for
// objects and subjects. ok is false in three cases:
//   - The answer can only be no.
//   - The subject is both a User and a ServiceAccount, which are two subjects in OpenFGA.
//   - More than [MaxOwners] owners are above the object, because OpenFGA would follow all of them.
func (x *Index) ToOpenFGACheck(q Query) (c iam.OpenFGACheck, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	kind, registered := x.registry.Kind(q.Type)
	if !registered || q.RequireExists && x.isObjectAbsent(&q) || q.User != "" && q.Account != "" {
		return c, false
	}
	var r scopeSet
	if x.collectScopesOfQuery(&r, x.kinds[q.Type], &q); r.cut {
		return c, false
	}
	asked := iam.AccessRequest{Groups: q.Groups, Permission: q.Permission, Kind: kind, Namespace: q.Namespace}
	switch {
	case q.User != "":
		asked.Subject = iam.UserSubject(q.User)
	case q.Account != "":
		asked.Subject = iam.ServiceAccountSubject(q.Account)
	}
	names := scopesByObject{}
	if q.Name != "" {
		asked.Object = names.addScope(q.objectScope())
	}
	if q.Parent.Name != "" && !q.Parent.All {
		asked.Parent = names.addScope(q.Parent)
	}
	names.addScope(Scope{Type: namespaceType, Ref: Ref{Name: q.Namespace}})
	objects := iam.DeclaredObjects{
		Registry: x.registry,
		Target:   func(object string) (iam.BindingTarget, bool) { return x.objectByOpenFGAName(names, object) },
		Inactive: func(string) bool { return x.users[q.User].inactive || x.isInactiveAccount(q.Account) },
	}
	return objects.BuildCheck(asked, func(group string) bool {
		return x.principals[Principal{Kind: TokenGroup, Ref: Ref{Name: group}}] != nil
	})
}

// scopesByObject maps the OpenFGA names of objects to scopes. A map is needed because these names cannot be parsed.
type scopesByObject map[string]Scope

func (n scopesByObject) addScope(at Scope) (object string) {
	object = iam.OpenFGAObject(at.Type, at.Namespace, at.Name)
	n[object] = at
	return object
}

// objectByOpenFGAName returns an object by its OpenFGA name. It also adds the names of the object's parents to n, so
// that later calls find them.
func (x *Index) objectByOpenFGAName(n scopesByObject, object string) (iam.BindingTarget, bool) {
	at, known := n[object]
	t, there := x.objectAt(at)
	if !known || !there {
		return iam.BindingTarget{}, false
	}
	n.addScope(Scope{Type: namespaceType, Ref: Ref{Name: t.Namespace}})
	for _, owner := range t.Owners {
		for _, namespace := range [...]string{t.Namespace, ""} {
			n.addScope(Scope{Type: owner.Type, Ref: Ref{namespace, owner.Name}})
		}
	}
	return t, true
}
