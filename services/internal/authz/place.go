package authz

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// namespaceType is the type of namespaces. A namespace is a parent of the objects in it if their kind registers
// namespaces as parents.
const namespaceType = iamv1alpha1.CoreGroup + "/Namespace"

// bindingType is the type of PolicyBindings, usually the kind with the most objects.
const bindingType = "iam.miloapis.com/PolicyBinding"

const userType = "iam.miloapis.com/User"

// Scope is an object, or a whole kind, on which a subject can hold a role.
type Scope struct {
	// Type is the OpenFGA type of the kind; see [iam.OpenFGAType].
	Type string
	Ref
	// All selects all objects of the kind.
	All bool
}

// scopeEntry is a [Scope] with its object and the grants on it.
type scopeEntry struct {
	Scope

	// target is the object, if it exists.
	target *iam.BindingTarget
	// trusted is set if grants take effect without a target.
	trusted bool
	// grants holds the grants that take effect. idle holds the other grants, by the UID of their object. Queries do not
	// read idle, so its size does not slow them down.
	grants []*grant
	idle   map[string][]*grant
}

// SetTypeObserved sets whether the index holds all objects of a type. Before it sets true, the caller must have set
// all objects.
func (x *Index) SetTypeObserved(typ string, observed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.observed[typ] = observed
}

// SetTarget adds, replaces or removes an object on which roles can be held.
func (x *Index) SetTarget(typ, namespace, name string, t *iam.BindingTarget) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := Scope{Type: typ, Ref: Ref{namespace, name}}
	if known, there := x.objectAt(at); t != nil && len(t.Owners) == 0 && there && x.places[at] == nil && known.UID == t.UID {
		return
	}
	p := x.ensureScopeEntry(at)
	p.setTarget(t)
	x.removeUnusedScopeEntry(p)
}

// objectAt returns the object of a scope, if it exists.
func (x *Index) objectAt(at Scope) (t iam.BindingTarget, there bool) {
	return x.objectOfEntry(x.places[at], at)
}

// objectOfEntry returns the object of the scope at, whose entry is p. p may be nil: a PolicyBinding without owners and
// grants needs no entry.
func (x *Index) objectOfEntry(p *scopeEntry, at Scope) (t iam.BindingTarget, there bool) {
	switch {
	case p != nil && p.target != nil:
		return *p.target, true
	case p == nil && at.Type == bindingType && !at.All:
		if b := x.bindings[at.Ref]; b != nil && b.uid != "" {
			return iam.BindingTarget{Namespace: b.Namespace, UID: b.uid}, true
		}
	}
	return t, false
}

// isUpToDate reports whether the index holds the existence, the UID and the owners of an object as in its metadata.
func (x *Index) isUpToDate(typ string, m *metav1.ObjectMeta) bool {
	want, lives := iam.TargetOfObject(m)
	is, there := x.objectAt(Scope{Type: typ, Ref: Ref{m.Namespace, m.Name}})
	return there == lives && (!lives || is.UID == want.UID && slices.Equal(is.Owners, want.Owners))
}

// existsWithUID reports whether the object with the UID exists at the scope.
func (x *Index) existsWithUID(at Scope, uid string) bool {
	t, there := x.objectAt(at)
	return there && t.UID == uid
}

// setTarget sets the object of the entry, and updates which grants take effect.
func (p *scopeEntry) setTarget(t *iam.BindingTarget) {
	if t != nil && p.hasTargetUID(t.UID) {
		p.target = t
		return
	}
	p.changeAndReclassifyGrants(func() { p.target = t })
}

// changeAndReclassifyGrants applies a change to the entry, and updates which grants take effect.
func (p *scopeEntry) changeAndReclassifyGrants(change func()) {
	all := p.grants
	for _, idle := range p.idle {
		all = append(all, idle...)
	}
	p.grants, p.idle = nil, nil
	change()
	for _, g := range all {
		p.setGrantsForUID(g.uid, append(p.grantsForUID(g.uid), g))
	}
}

// RefreshTypeTrust reads again whether the objects of a type are trusted; see [New].
func (x *Index) RefreshTypeTrust(typ string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for at, p := range x.places {
		if trusted := x.mayExistUnindexed(at); at.Type == typ && trusted != p.trusted {
			p.changeAndReclassifyGrants(func() { p.trusted = trusted })
		}
	}
}

// isEffectiveFor reports whether grants for a UID take effect: the object exists, or its type is trusted.
func (p *scopeEntry) isEffectiveFor(uid string) bool {
	return p.All || p.hasTargetUID(uid) || p.target == nil && p.trusted
}

// grantsForUID returns the list that holds the grants for a UID: grants if they take effect, otherwise a list in idle.
func (p *scopeEntry) grantsForUID(uid string) []*grant {
	if p.isEffectiveFor(uid) {
		return p.grants
	}
	return p.idle[uid]
}

func (p *scopeEntry) setGrantsForUID(uid string, grants []*grant) {
	switch {
	case p.isEffectiveFor(uid):
		p.grants = grants
	case len(grants) == 0:
		delete(p.idle, uid)
	case p.idle == nil:
		p.idle = map[string][]*grant{uid: grants}
	default:
		p.idle[uid] = grants
	}
}

func (x *Index) ensureScopeEntry(at Scope) *scopeEntry {
	p := x.places[at]
	if p == nil {
		p = &scopeEntry{Scope: at, trusted: x.mayExistUnindexed(at)}
		if t, there := x.objectOfEntry(nil, at); there {
			p.target = &t
		}
		x.places[at] = p
	}
	return p
}

// mayExistUnindexed reports whether an object may exist at the scope although the index does not hold it.
func (x *Index) mayExistUnindexed(at Scope) bool {
	return !at.All && at.Name != "" && x.trusted != nil && x.trusted(at.Type)
}

func (x *Index) removeUnusedScopeEntry(p *scopeEntry) {
	if p.target == nil && len(p.grants)+len(p.idle) == 0 {
		delete(x.places, p.Scope)
	}
}

// hasTargetUID reports whether the entry holds the object with the UID.
func (p *scopeEntry) hasTargetUID(uid string) bool { return p.target != nil && p.target.UID == uid }

// scopeOfSelector returns the scope of a binding, and the UID that the object must have.
func scopeOfSelector(s iamv1alpha1.ResourceSelector) (at Scope, uid string, ok bool) {
	switch {
	case s.ResourceRef != nil:
		return Scope{
			Type: iam.OpenFGAType(s.ResourceRef.APIGroup, s.ResourceRef.Kind),
			Ref:  Ref{s.ResourceRef.Namespace, s.ResourceRef.Name},
		}, s.ResourceRef.UID, true
	case s.ResourceKind != nil:
		return Scope{Type: iam.OpenFGAType(s.ResourceKind.APIGroup, s.ResourceKind.Kind), All: true}, "", true
	}
	return at, "", false
}

// few bounds the scopes that are searched linearly, without allocation.
const few = 32

// MaxOwners bounds the owners that one query follows, the nearest first. The owners of the object and of all its
// ancestors count together. Every user that may create objects can give each object many owners.
const MaxOwners = 1000

// scopeSet collects all scopes whose roles apply to a query.
type scopeSet struct {
	near  [few]*scopeEntry
	count int
	far   map[*scopeEntry]struct{}
	// from maps each object to the child from which it was reached; nil if no path is needed.
	from map[Scope]Scope
	// ahead and further form a queue of parents; further is used when ahead is full. many is the number of queued
	// parents, and passed the number of visited ones.
	ahead        [few / 2]Scope
	further      []Scope
	many, passed int
	// owners counts the followed owners. cut is set if there are more than MaxOwners.
	owners int
	cut    bool
}

// addScope adds a scope and reports whether it is new.
func (r *scopeSet) addScope(p *scopeEntry) bool {
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
		r.far = map[*scopeEntry]struct{}{}
	}
	r.far[p] = struct{}{}
	return true
}

// allScopes yields all scopes of the set.
func (r *scopeSet) allScopes(yield func(*scopeEntry) bool) {
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

// addScopeAndAncestors adds the whole kind, the object, and everything above it. namespace is the namespace of the
// request; it is replaced by the object's own namespace if the index holds the object.
func (x *Index) addScopeAndAncestors(r *scopeSet, k *registeredKind, at Scope, namespace string) {
	x.expandScope(r, k, at, namespace)
	x.expandParents(r)
}

// expandParents visits the queued parents.
func (x *Index) expandParents(r *scopeSet) {
	for at, ok := r.nextParent(); ok; at, ok = r.nextParent() {
		x.expandScope(r, x.kinds[at.Type], at, "")
	}
}

// expandScope adds the whole kind and the object, and queues the object's parents.
func (x *Index) expandScope(r *scopeSet, k *registeredKind, at Scope, namespace string) {
	r.addScope(x.places[Scope{Type: k.typ, All: true}])
	p := x.places[at]
	object, known := x.objectOfEntry(p, at)
	if p != nil && (known || p.trusted) && !r.addScope(p) {
		return
	}
	if known {
		namespace = object.Namespace
	}
	if k.parents[namespaceType] != nil && namespace != "" {
		r.queueParent(at, Scope{Type: namespaceType, Ref: Ref{Name: namespace}})
	}
	if !known {
		return
	}
	for _, owner := range object.Owners {
		if r.owners == MaxOwners {
			r.cut = true
			return
		}
		if r.owners++; k.parents[owner.Type] == nil {
			continue
		}
		// An owner is in the namespace of the object, or cluster-scoped.
		for _, namespace := range [...]string{object.Namespace, ""} {
			above := Scope{Type: owner.Type, Ref: Ref{namespace, owner.Name}}
			if owner.UID != "" && x.existsWithUID(above, owner.UID) {
				r.queueParent(at, above)
			}
		}
	}
}

// queueParent queues above as a parent of at.
func (r *scopeSet) queueParent(at, above Scope) {
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

// nextParent returns the next queued parent, the nearest first.
func (r *scopeSet) nextParent() (at Scope, ok bool) {
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
