package decide

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// namespaceType is the one whose objects are parents of what is in them, where they are registered as such.
const namespaceType = iamv1alpha1.CoreGroup + "/Namespace"

// bindingType is the one of which there are the most objects.
const bindingType = "iam.miloapis.com/PolicyBinding"

const userType = "iam.miloapis.com/User"

// Place is where roles can be had: on one object, or on all of a kind.
type Place struct {
	// Type is what [iam.Type] names.
	Type string
	Ref
	// All says that it is no object, but all of its kind.
	All bool
}

// place is one where there is something.
type place struct {
	Place

	// target is the object, if there is one.
	target *iam.Target
	// trusted says that it counts without.
	trusted bool
	// grants are those that count here, idle the others, by the UID of the object that was meant: they slow nobody down,
	// however many somebody makes of UIDs that no object has.
	grants []*grant
	idle   map[string][]*grant
}

// SetObserved tells of a type whether all its objects are known: else what was not told may be there all the same. First tell
// of these that they are.
func (x *Index) SetObserved(typ string, observed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.observed[typ] = observed
}

// SetTarget tells of an object that roles can be had on.
func (x *Index) SetTarget(typ, namespace, name string, t *iam.Target) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := Place{Type: typ, Ref: Ref{namespace, name}}
	if known, there := x.object(at); t != nil && len(t.Owners) == 0 && there && x.places[at] == nil && known.UID == t.UID {
		return
	}
	p := x.place(at)
	p.setTarget(t)
	x.releasePlace(p)
}

// object is what is at a place, if anything is.
func (x *Index) object(at Place) (t iam.Target, there bool) { return x.objectOf(x.places[at], at) }

// objectOf is what is at a place. A binding of which nothing else is to be known is one by itself.
func (x *Index) objectOf(p *place, at Place) (t iam.Target, there bool) {
	switch {
	case p != nil && p.target != nil:
		return *p.target, true
	case p == nil && at.Type == bindingType && !at.All:
		if b := x.bindings[at.Ref]; b != nil && b.uid != "" {
			return iam.Target{Namespace: b.Namespace, UID: b.uid}, true
		}
	}
	return t, false
}

// saysObject says whether an object is known as it is: whether it is there, and whose it is.
func (x *Index) saysObject(typ string, m *metav1.ObjectMeta) bool {
	want, lives := iam.TargetOfObject(m)
	is, there := x.object(Place{Type: typ, Ref: Ref{m.Namespace, m.Name}})
	return there == lives && (!lives || is.UID == want.UID && slices.Equal(is.Owners, want.Owners))
}

// isThere says whether the object is at a place that was meant.
func (x *Index) isThere(at Place, uid string) bool {
	t, there := x.object(at)
	return there && t.UID == uid
}

// setTarget makes another object be here, and finds out which grants count then.
func (p *place) setTarget(t *iam.Target) {
	if t != nil && p.isThere(t.UID) {
		p.target = t
		return
	}
	p.regrant(func() { p.target = t })
}

// regrant finds out which grants count after a change.
func (p *place) regrant(change func()) {
	all := p.grants
	for _, idle := range p.idle {
		all = append(all, idle...)
	}
	p.grants, p.idle = nil, nil
	change()
	for _, g := range all {
		p.setGranted(g.uid, append(p.granted(g.uid), g))
	}
}

// Retrust asks anew whether the objects of a type are trusted.
func (x *Index) Retrust(typ string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for at, p := range x.places {
		if trusted := x.trusts(at); at.Type == typ && trusted != p.trusted {
			p.regrant(func() { p.trusted = trusted })
		}
	}
}

// counts says whether what is granted on an object of a UID is granted here: it is there, or need not be.
func (p *place) counts(uid string) bool {
	return p.All || p.isThere(uid) || p.target == nil && p.trusted
}

// granted are the grants on an object of a UID, among others if they count.
func (p *place) granted(uid string) []*grant {
	if p.counts(uid) {
		return p.grants
	}
	return p.idle[uid]
}

func (p *place) setGranted(uid string, grants []*grant) {
	switch {
	case p.counts(uid):
		p.grants = grants
	case len(grants) == 0:
		delete(p.idle, uid)
	case p.idle == nil:
		p.idle = map[string][]*grant{uid: grants}
	default:
		p.idle[uid] = grants
	}
}

func (x *Index) place(at Place) *place {
	p := x.places[at]
	if p == nil {
		p = &place{Place: at, trusted: x.trusts(at)}
		if t, there := x.objectOf(nil, at); there {
			p.target = &t
		}
		x.places[at] = p
	}
	return p
}

// trusts says whether there may be an object that nobody follows.
func (x *Index) trusts(at Place) bool {
	return !at.All && at.Name != "" && x.trusted != nil && x.trusted(at.Type)
}

func (x *Index) releasePlace(p *place) {
	if p.target == nil && len(p.grants)+len(p.idle) == 0 {
		delete(x.places, p.Place)
	}
}

// isThere says whether the object is here that was meant.
func (p *place) isThere(uid string) bool { return p.target != nil && p.target.UID == uid }

// placeOf is where a binding gives its role, and the UID that the object must have.
func placeOf(s iamv1alpha1.ResourceSelector) (at Place, uid string, ok bool) {
	switch {
	case s.ResourceRef != nil:
		return Place{Type: iam.Type(s.ResourceRef.APIGroup, s.ResourceRef.Kind), Ref: Ref{s.ResourceRef.Namespace, s.ResourceRef.Name}}, s.ResourceRef.UID, true
	case s.ResourceKind != nil:
		return Place{Type: iam.Type(s.ResourceKind.APIGroup, s.ResourceKind.Kind), All: true}, "", true
	}
	return at, "", false
}

// few places are searched one by one, and need no allocation.
const few = 32

// MostOwners is how many owners of an object, and of what is above it, are looked at for an answer, the nearest first: who may make
// objects gives each of them as many as fit, and these as many.
const MostOwners = 1000

// reach is all places where a role counts for what is asked about.
type reach struct {
	near  [few]*place
	count int
	far   map[*place]struct{}
	// from leads from each object to the one that belongs to it; nil unless somebody wants to know.
	from map[Place]Place
	// ahead, and then further, are what is above what was visited: so many, of which so many were passed.
	ahead        [few / 2]Place
	further      []Place
	many, passed int
	// owners are how many were looked at; cut says that there are more.
	owners int
	cut    bool
}

// add says whether a place is new.
func (r *reach) add(p *place) bool {
	if p == nil || slices.Contains(r.near[:r.count], p) {
		return false
	}
	if r.count < few {
		r.near[r.count] = p
		r.count++
		return true
	}
	if _, seen := r.far[p]; seen {
		return false
	}
	if r.far == nil {
		r.far = map[*place]struct{}{}
	}
	r.far[p] = struct{}{}
	return true
}

// all yields the places.
func (r *reach) all(yield func(*place) bool) {
	for _, p := range r.near[:r.count] {
		if !yield(p) {
			return
		}
	}
	for p := range r.far {
		if !yield(p) {
			return
		}
	}
}

// walk adds all of a kind, the object, and whatever is above it. The namespace is that of the
// request: an object that is known knows its own.
func (x *Index) walk(r *reach, k *kind, at Place, namespace string) {
	x.visit(r, k, at, namespace)
	x.ascend(r)
}

// ascend visits what is above what was visited.
func (x *Index) ascend(r *reach) {
	for at, ok := r.next(); ok; at, ok = r.next() {
		x.visit(r, x.kinds[at.Type], at, "")
	}
}

// visit adds all of a kind, and the object, and finds what it belongs to.
func (x *Index) visit(r *reach, k *kind, at Place, namespace string) {
	r.add(x.places[Place{Type: k.typ, All: true}])
	p := x.places[at]
	object, known := x.objectOf(p, at)
	if p != nil && (known || p.trusted) && !r.add(p) {
		return
	}
	if known {
		namespace = object.Namespace
	}
	if k.parents[namespaceType] != nil && namespace != "" {
		r.climb(at, Place{Type: namespaceType, Ref: Ref{Name: namespace}})
	}
	if !known {
		return
	}
	for _, owner := range object.Owners {
		if r.owners == MostOwners {
			r.cut = true
			return
		}
		if r.owners++; k.parents[owner.Type] == nil {
			continue
		}
		// An owner is in the namespace of the object, or in none.
		for _, namespace := range [...]string{object.Namespace, ""} {
			above := Place{Type: owner.Type, Ref: Ref{namespace, owner.Name}}
			if owner.UID != "" && x.isThere(above, owner.UID) {
				r.climb(at, above)
			}
		}
	}
}

// climb has what something belongs to visited later.
func (r *reach) climb(at, above Place) {
	if _, known := r.from[above]; r.from != nil && !known {
		r.from[above] = at
	}
	if r.many < len(r.ahead) {
		r.ahead[r.many] = above
	} else {
		r.further = append(r.further, above)
	}
	r.many++
}

// next is what is to be visited then, the nearest first.
func (r *reach) next() (at Place, ok bool) {
	switch i := r.passed; {
	case i == r.many:
		return at, false
	case i < len(r.ahead):
		at = r.ahead[i]
	default:
		at = r.further[i-len(r.ahead)]
	}
	r.passed++
	return at, true
}
