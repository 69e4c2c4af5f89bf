package authz

// Query asks whether a subject has a permission on an object.
type Query struct {
	Subject

	// Permission is the required permission. Type is the kind of the object: the kind that registers the permission,
	// or a parent kind of it.
	Permission, Type string
	// Namespace is the namespace of the request. It counts as a parent of the object if the kind registers namespaces
	// as parents. If the index holds the object, the object's own namespace is used instead.
	Namespace string
	// Name is the name of the object; empty if the request names no object.
	Name string
	// RequireExists refuses access if the object does not exist, even if the subject has the permission on the whole
	// kind.
	RequireExists bool
	// Parent is the parent in the request, or the parent of all objects if the request names no object. It is used
	// only if the index does not hold the object, and only if the parent's kind is above Type. The caller must trust
	// the request.
	Parent Scope
}

// Proof is the reason why access is allowed: Binding gives Principal the role Role on the scope At.
type Proof struct {
	Binding, Role Ref
	Principal     Principal
	At            Scope
}

// Decide reports whether a query is allowed, and returns the proof. It usually allocates no memory; the exceptions are
// subjects in very many groups and objects with very many ancestors.
func (x *Index) Decide(q Query) (why Proof, allowed bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var r scopeSet
	return x.decideWithScopes(q, &r)
}

func (x *Index) decideWithScopes(q Query, r *scopeSet) (why Proof, allowed bool) {
	k, permission, ok := x.resolveQuery(&q)
	if !ok {
		return why, false
	}
	var own, groups [few]*principal
	who := x.newSubjectPrincipals(q.Subject, own[:0])
	if len(who.own) == 0 && who.memberships == 0 {
		return why, false
	}
	x.collectScopesOfQuery(r, k, &q)
	for at := range r.allScopes {
		for _, g := range at.grants {
			if !who.groupsListed && who.memberships > 0 && who.memberships < len(g.groups) {
				who.groups, who.groupsListed = x.appendGroups(groups[:0], who.user), true
			}
			if p := x.grantHolder(&who, g, permission); p != nil {
				return Proof{p.grants.bindingOfGrant(g).Ref, g.role.Ref, p.Principal, at.Scope}, true
			}
		}
	}
	return why, false
}

// resolveQuery returns the kind and the number of the permission. ok is false if the permission does not apply to the
// kind, or if the object must exist and does not.
func (x *Index) resolveQuery(q *Query) (k *registeredKind, permission int, ok bool) {
	k = x.kinds[q.Type]
	permission, known := x.permissions[q.Permission]
	return k, permission, known && k != nil && k.grantable.Has(permission) && (!q.RequireExists || !x.isObjectAbsent(q))
}

// isObjectAbsent reports whether the index does not hold the object of the query.
func (x *Index) isObjectAbsent(q *Query) bool {
	_, there := x.objectAt(q.objectScope())
	return !there
}

// collectScopesOfQuery adds all scopes whose roles apply to a query.
func (x *Index) collectScopesOfQuery(r *scopeSet, k *registeredKind, q *Query) {
	at := q.objectScope()
	x.expandScope(r, k, at, q.Namespace)
	if q.Parent.Name != "" && !q.Parent.All && k.isBelowType(q.Parent.Type) && (q.Name == "" || x.isObjectAbsent(q)) {
		r.queueParent(at, q.Parent)
	}
	x.expandParents(r)
}

func (q *Query) objectScope() Scope { return Scope{Type: q.Type, Ref: Ref{q.Namespace, q.Name}} }
