package decide

// holdings computes what a subject holds. It computes each grant and each place once, because anybody may make many of
// both.
type holdings struct {
	x      *Index
	grants map[*grant]struct{}
	// everywhere holds the permissions on all objects of their kinds.
	everywhere bits
	// at caches the permissions at places.
	at map[Place]bits
}

// holdings returns the holdings of a subject.
func (x *Index) holdings(s Subject) *holdings {
	h := &holdings{x: x, grants: map[*grant]struct{}{}, everywhere: x.bitsOf(nil), at: map[Place]bits{}}
	for _, p := range x.are(s) {
		for g := range p.grants.all() {
			h.grants[g] = struct{}{}
		}
	}
	for typ := range x.kinds {
		all := x.bitsOf(nil)
		if p := x.places[Place{Type: typ, All: true}]; p != nil {
			h.among(all, p)
		}
		for n, owner := range x.owners {
			if owner == typ && all.has(n) {
				h.everywhere.set(n)
			}
		}
	}
	return h
}

// among adds the permissions that the subject's grants at a place give.
func (h *holdings) among(all bits, p *place) {
	for _, g := range p.grants {
		if _, mine := h.grants[g]; mine {
			all.add(g.role.effective)
		}
	}
}

// on returns the permissions on an object with a UID, or on a whole kind. If another object has the name, only
// permissions on all objects there count.
func (h *holdings) on(k *kind, at Place, uid string) bits {
	if t, there := h.x.object(at); at.All || there && t.UID != uid {
		at = Place{Type: at.Type, Ref: Ref{Namespace: at.Namespace}}
	}
	if has, known := h.at[at]; known {
		return has
	}
	has := h.x.bitsOf(nil)
	has.add(h.everywhere)
	var r reach
	h.x.walk(&r, k, at, at.Namespace)
	for p := range r.all {
		h.among(has, p)
	}
	h.at[at] = has
	return has
}

// missing returns a permission that a role gives on an object, or on a whole kind, and the subject lacks.
func (h *holdings) missing(ref Ref, at Place, uid string) (m Missing, lacks bool) {
	r, m, lacks := h.x.given(ref, at)
	if lacks {
		return m, true
	}
	k := h.x.kinds[at.Type]
	if k == nil {
		return Missing{Role: ref, At: at}, true
	}
	name, lacks := h.x.first(r.effective, k.held, h.on(k, at, uid))
	return Missing{Role: ref, Permission: name, At: at}, lacks
}
