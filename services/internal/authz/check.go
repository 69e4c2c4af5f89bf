package authz

import "github.com/entail-dev/entail/services/internal/iam"

// Check converts a query to a check of OpenFGA, with the contextual tuples that the index holds for objects and
// subjects. ok is false in three cases:
//
//   - The answer can only be no.
//   - The subject is both a User and a ServiceAccount, which are two subjects in OpenFGA.
//   - There are more than [MostOwners] owners, because OpenFGA would follow all of them.
func (x *Index) Check(q Query) (c iam.Check, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	kind, registered := x.registry.Kind(q.Type)
	if !registered || q.RequireExists && x.isAbsent(&q) || q.User != "" && q.Account != "" {
		return c, false
	}
	var r scopeSet
	if x.collectScopes(&r, x.kinds[q.Type], &q); r.cut {
		return c, false
	}
	asked := iam.Question{Groups: q.Groups, Permission: q.Permission, Kind: kind, Namespace: q.Namespace}
	switch {
	case q.User != "":
		asked.Subject = iam.User(q.User)
	case q.Account != "":
		asked.Subject = iam.ServiceAccount(q.Account)
	}
	names := named{}
	if q.Name != "" {
		asked.Object = names.addObject(q.scopeOf())
	}
	if q.Parent.Name != "" && !q.Parent.All {
		asked.Parent = names.addObject(q.Parent)
	}
	names.addObject(Scope{Type: namespaceType, Ref: Ref{Name: q.Namespace}})
	objects := iam.Lookup{
		Registry: x.registry,
		Target:   func(object string) (iam.Target, bool) { return x.targetOf(names, object) },
		Inactive: func(string) bool { return x.users[q.User].inactive || x.isInactive(q.Account) },
	}
	return objects.Check(asked, func(group string) bool {
		return x.principals[Principal{Sort: TokenGroup, Ref: Ref{Name: group}}] != nil
	})
}

// named maps the names of objects in OpenFGA to scopes, because these names cannot be parsed.
type named map[string]Scope

func (n named) addObject(at Scope) (object string) {
	object = iam.Object(at.Type, at.Namespace, at.Name)
	n[object] = at
	return object
}

// targetOf returns an object by its name in OpenFGA. It also adds the names of the object's parents to n, so that later
// calls find them.
func (x *Index) targetOf(n named, object string) (iam.Target, bool) {
	at, known := n[object]
	t, there := x.objectAt(at)
	if !known || !there {
		return iam.Target{}, false
	}
	n.addObject(Scope{Type: namespaceType, Ref: Ref{Name: t.Namespace}})
	for _, owner := range t.Owners {
		for _, namespace := range [...]string{t.Namespace, ""} {
			n.addObject(Scope{Type: owner.Type, Ref: Ref{namespace, owner.Name}})
		}
	}
	return t, true
}
