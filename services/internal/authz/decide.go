package authz

// Query asks whether a subject may do something to an object.
type Query struct {
	Subject

	// Permission is the required permission. Type is the kind on which it is held: its own, or a kind above.
	Permission, Type string
	// Namespace is the namespace of the request. It is a parent if the kind registers namespaces as parents. A known
	// object has its own namespace.
	Namespace string
	// Name is the name of the object; empty if the request names none.
	Name string
	// RequireExists means that the answer is no if the object does not exist, even if a role on the whole kind would allow it.
	RequireExists bool
	// Parent is the parent in the request, or the parent of all objects if the request names none. It counts only for
	// an object that is unknown, and only if its kind is above that of the object. The caller trusts the request.
	Parent Scope
}

// Proof is the reason for a yes: a binding gives a principal a role at a place.
type Proof struct {
	Binding, Role Ref
	Principal     Principal
	At            Scope
}

// Decide answers a question. It allocates no memory, except for subjects in very many groups, or objects below very
// many places.
func (x *Index) Decide(q Query) (why Proof, allowed bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var r scopeSet
	return x.decideIn(q, &r)
}

func (x *Index) decideIn(q Query, r *scopeSet) (why Proof, allowed bool) {
	k, permission, ok := x.resolveQuestion(&q)
	if !ok {
		return why, false
	}
	var own, groups [few]*principal
	who := x.newAsker(q.Subject, own[:0])
	if len(who.own) == 0 && who.memberships == 0 {
		return why, false
	}
	x.collectScopes(r, k, &q)
	for at := range r.allScopes {
		for _, g := range at.grants {
			if !who.listed && who.memberships > 0 && who.memberships < len(g.groups) {
				who.groups, who.listed = x.appendGroups(groups[:0], who.user), true
			}
			if p := x.holderOf(&who, g, permission); p != nil {
				return Proof{p.grants.bindingOf(g).Ref, g.role.Ref, p.Principal, at.Scope}, true
			}
		}
	}
	return why, false
}

// resolveQuestion returns the kind and the number of the permission. ok is false if the permission cannot be held on objects of
// the kind, or if the object must exist and does not.
func (x *Index) resolveQuestion(q *Query) (k *kind, number int, ok bool) {
	k = x.kinds[q.Type]
	number, known := x.permissions[q.Permission]
	return k, number, known && k != nil && k.held.hasBit(number) && (!q.RequireExists || !x.isAbsent(q))
}

// isAbsent reports whether no object has the name.
func (x *Index) isAbsent(q *Query) bool {
	_, there := x.objectAt(q.scopeOf())
	return !there
}

// collectScopes finds all places where a role counts for a question.
func (x *Index) collectScopes(r *scopeSet, k *kind, q *Query) {
	at := q.scopeOf()
	x.expandScope(r, k, at, q.Namespace)
	if q.Parent.Name != "" && !q.Parent.All && k.isBelow(q.Parent.Type) && (q.Name == "" || x.isAbsent(q)) {
		r.addParent(at, q.Parent)
	}
	x.expandParents(r)
}

func (q *Query) scopeOf() Scope { return Scope{Type: q.Type, Ref: Ref{q.Namespace, q.Name}} }
