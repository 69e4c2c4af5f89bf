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
	// Parent is what the request says that the object is of, or everything that it names none of. It counts where nothing is
	// known of the object, and where its kind is above that of the object: whoever sets it believes the request.
	Parent Place
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
	var own, groups [few]*principal
	who := x.asker(q.Subject, own[:0])
	if len(who.own) == 0 && who.memberships == 0 {
		return why, false
	}
	x.reach(r, k, &q)
	for at := range r.all {
		for _, g := range at.grants {
			if !who.listed && who.memberships > 0 && who.memberships < len(g.groups) {
				who.groups, who.listed = x.appendGroups(groups[:0], who.user), true
			}
			if p := x.holder(&who, g, permission); p != nil {
				return Proof{p.grants.has(g).Ref, g.role.Ref, p.Principal, at.Place}, true
			}
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
	_, there := x.object(q.place())
	return !there
}

// reach finds all places where a role counts for a question.
func (x *Index) reach(r *reach, k *kind, q *Question) {
	at := q.place()
	x.visit(r, k, at, q.Namespace)
	if q.Parent.Name != "" && !q.Parent.All && k.isBelow(q.Parent.Type) && (q.Name == "" || x.isAbsent(q)) {
		r.climb(at, q.Parent)
	}
	x.ascend(r)
}

func (q *Question) place() Place { return Place{Type: q.Type, Ref: Ref{q.Namespace, q.Name}} }
