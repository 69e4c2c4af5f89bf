package decide

// Question asks whether somebody may do something to an object.
type Question struct {
	Subject

	// Permission is what it takes, Type what it is held on: that of the permission, or one above.
	Permission, Type string
	// Namespace is that of the request. It is a parent where namespaces are registered as such; an object that is known knows its own.
	Namespace string
	// Name is that of the object; empty if the request names none.
	Name string
	// There says that nobody may do anything to an object that is not there: a role on all of its kind does not count.
	There bool
}

// Proof is why somebody may: a binding gives a principal a role at a place.
type Proof struct {
	Binding, Role Ref
	Principal     Principal
	At            Place
}

// Decide answers a question. It allocates nothing, unless somebody is in more groups, or something is
// below more places, than people make.
func (x *Index) Decide(q Question) (why Proof, allowed bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var r reach
	return x.decide(q, &r)
}

func (x *Index) decide(q Question, r *reach) (why Proof, allowed bool) {
	k, permission, ok := x.asked(&q)
	if !ok {
		return why, false
	}
	var principals [few]*principal
	who := x.are(q.Subject, principals[:0])
	if len(who) == 0 {
		return why, false
	}
	x.walk(r, k, q.place(), q.Namespace)
	for at := range r.all {
		if why, allowed = at.proof(permission, who); allowed {
			return why, true
		}
	}
	return why, false
}

// asked finds a kind, and a permission that can be held on its objects.
func (x *Index) asked(q *Question) (k *kind, number int, ok bool) {
	k = x.kinds[q.Type]
	number, known := x.permissions[q.Permission]
	return k, number, known && k != nil && k.held.has(number) && (!q.There || !x.isAbsent(q))
}

// isAbsent says whether there is no object that has the name.
func (x *Index) isAbsent(q *Question) bool {
	p := x.places[q.place()]
	return p == nil || p.target == nil
}

func (q *Question) place() Place { return Place{Type: q.Type, Ref: Ref{q.Namespace, q.Name}} }

// proof finds a binding here that gives somebody a permission.
func (p *place) proof(permission int, who []*principal) (why Proof, ok bool) {
	for _, g := range p.grants {
		if !g.gives(permission) {
			continue
		}
		for _, principal := range who {
			if bindings := principal.grants[g]; len(bindings) > 0 {
				return Proof{bindings[0].Ref, g.role.Ref, principal.Principal, p.Place}, true
			}
		}
	}
	return why, false
}
