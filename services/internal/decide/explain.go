package decide

import "slices"

// Explanation is the reason for an answer, or what is missing.
type Explanation struct {
	Proof

	Allowed bool
	// Membership is the membership of the subject in the group that holds the role, if that is a [Group].
	Membership Ref
	// Inherits leads from the bound role to the role that includes the permission.
	Inherits []Ref
	// Path leads from the object to the place where the role is bound.
	Path []Place

	// Unregistered means that the permission cannot be held on objects of the kind.
	Unregistered bool
	// NoSubject means that there is no such active user or account, NoObject that there is no such object.
	NoSubject, NoObject bool
	// Lacking lists roles that the subject holds where they would count, but that lack the permission. The list is
	// bounded.
	Lacking []Proof
	// Truncated means that not all objects above were followed.
	Truncated bool
}

// mostLacking bounds Explanation.Lacking.
const mostLacking = 20

// Explain answers a question with the reason.
func (x *Index) Explain(q Question) Explanation {
	x.mu.RLock()
	defer x.mu.RUnlock()
	r := reach{from: map[Place]Place{}}
	why, allowed := x.decide(q, &r)
	e := Explanation{Proof: why, Allowed: allowed}
	if allowed {
		e.Membership = x.membership(q.User, why.Principal)
		e.Inherits = lineage(x.roles[why.Role], q.Permission)
		e.Path = r.path(q.place(), why.At)
		return e
	}
	e.NoObject, e.Truncated = q.Name != "" && x.kinds[q.Type] != nil && x.isAbsent(&q), r.cut
	q.There = false
	k, _, registered := x.asked(&q)
	e.Unregistered = !registered
	e.NoSubject = q.User != "" && !x.users[q.User].acts() || q.Account != "" && x.isInactive(q.Account)
	if registered {
		e.Lacking = x.lacking(q, k)
	}
	return e
}

// membership returns a membership of a user in a group.
func (x *Index) membership(user string, group Principal) Ref {
	for ref := range x.membershipsOf[user] {
		if m := x.memberships[ref]; group.Sort == Group && m.group == group.Ref && x.counts(m) {
			return ref
		}
	}
	return Ref{}
}

// lineage returns a shortest path of inheritance from a role to one that includes a permission.
func lineage(r *role, permission string) []Ref {
	heir := map[Ref]Ref{r.Ref: {}}
	for queue := []*role{r}; len(queue) > 0; queue = queue[1:] {
		if slices.Contains(queue[0].included, permission) {
			return back(heir, queue[0].Ref)
		}
		for _, inherited := range queue[0].inherits {
			if _, seen := heir[inherited.Ref]; !seen {
				heir[inherited.Ref] = queue[0].Ref
				queue = append(queue, inherited)
			}
		}
	}
	return nil
}

// path returns the path from an object to a place above it. A path to a whole kind leads through an object of that
// kind.
func (r *reach) path(from, to Place) []Place {
	if !to.All {
		return back(r.from, to)
	}
	above := from
	for object := range r.from {
		if object.Type == to.Type && (above.Type != to.Type || object.Compare(above) < 0) {
			above = object
		}
	}
	if above.Name == "" {
		return []Place{to}
	}
	return append(back(r.from, above), to)
}

// back follows links to their start, and returns them in reverse.
func back[T comparable](links map[T]T, to T) []T {
	var none T
	path := []T{to}
	for at, ok := links[to]; ok && at != none; at, ok = links[at] {
		path = append(path, at)
	}
	slices.Reverse(path)
	return path
}

// lacking lists roles that the subject holds here.
func (x *Index) lacking(q Question, k *kind) []Proof {
	var r reach
	x.reach(&r, k, &q)
	grants := r.grants()
	var had []Proof
	for _, p := range x.are(q.Subject) {
		for g := range p.among(grants) {
			if len(had) == mostLacking {
				return had
			}
			had = append(had, Proof{p.grants.has(g).Ref, g.role.Ref, p.Principal, g.at.Place})
		}
	}
	return had
}
