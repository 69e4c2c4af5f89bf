package mirror

import (
	"context"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// tail looks at the store as a whole, and does so again soon.
func (r *Reconciler) tail(ctx context.Context, p Pass) error {
	err := r.locate(ctx, p)
	if r.tell(ctx, p); err != nil {
		return err
	}
	n, err := r.declared(ctx)
	if err != nil {
		return err
	}
	if n == nil { // The Store will tell when there is one, and OpenFGA whose it is.
		if store, known := r.State.where(); known && !r.State.ends(store) {
			p.Reporter.Again(interval)
		}
		return nil
	}
	if err := r.copy.follow(ctx, n.of.storeID); err != nil {
		return err
	}
	if p.Resync {
		p.Enqueue(statuses, Key{sort: whole})
		for _, kind := range r.State.all() {
			kind.rouse()
		}
	}
	r.readForbidden(ctx)
	told := r.State.observed.news()
	if missed, loaded := r.missed.Swap(false), r.copy.loaded(); missed || r.swept != n.of || r.loaded != loaded {
		r.everything(n, p)
		r.asked.Store(&n.moment)
		r.swept, r.loaded = n.of, loaded
	} else {
		r.observe(n, p, told)
	}
	if r.copy.owes() {
		p.Enqueue(mayTake, Key{sort: back})
	}
	r.dispel(p)
	r.emptied.Store(n.of.ends && r.copy.empty())
	p.Reporter.Again(interval)
	return nil
}

// back looks for what was committed late, and for another history, beside all who decide.
func (r *Reconciler) back(ctx context.Context, p Pass) error {
	n, err := r.declared(ctx)
	if n == nil || err != nil || !r.copy.is(n.of.storeID) {
		return err
	}
	err = r.copy.lookBack(ctx, n.of.storeID)
	r.dispel(p)
	return err
}

// dispel has objects looked at of which the copy is perhaps untrue.
func (r *Reconciler) dispel(p Pass) {
	for _, object := range r.copy.doubts() {
		p.Enqueue(revokes, Key{sort: tuples, object: object})
	}
}

// Emptied says that nothing of IAM keeps its store: it has no model yet, or it is to go and holds nothing any more, or it is
// not ours.
func (r *Reconciler) Emptied() bool {
	_, known := r.State.where()
	return !known || r.emptied.Load()
}

// whole reads all that the store holds; what differs from the copy is looked at with the tail. Nothing waits for it meanwhile.
func (r *Reconciler) whole(ctx context.Context) error {
	n, err := r.declared(ctx)
	if n == nil || err != nil {
		return err
	}
	return r.copy.review(ctx, n.of.storeID)
}

// everything asks for all objects that hold something, or are to, and for all that is said.
func (r *Reconciler) everything(n *snapshot, p Pass) {
	objects := map[string]bool{}
	for _, object := range r.copy.known() {
		objects[object] = true
	}
	for of, kind := range r.State.kinds {
		r.ask(p, of, kind.keys(), objects)
	}
	for _, object := range r.State.owned() {
		objects[object] = true
	}
	r.enqueue(n, p, objects)
}

// ask adds the objects of OpenFGA that hold what declared ones of a kind say, and asks for what is said in these.
func (r *Reconciler) ask(p Pass, of event.GroupResource, keys []event.Key, objects map[string]bool) {
	lacking := 0
	for _, k := range keys {
		lacks := false
		for _, object := range r.State.holders(k) {
			objects[object] = true
			lacks = lacks || gives(of, object) && r.copy.size(object) == 0
		}
		if lacks {
			lacking++
		}
		r.revisit(p, k)
	}
	r.Confirmer.Expect(of, lacking)
}

// gives says whether an object of OpenFGA is where those of a kind give something to somebody: if it holds nothing, the API server
// will have to be asked about them.
func gives(kind event.GroupResource, object string) bool {
	switch iam.TypeOf(object) {
	case iam.GrantType:
		return kind == kinds.PolicyBindings().GroupResource
	case iam.GroupType:
		return kind == kinds.GroupMemberships().GroupResource
	}
	return false
}

// enqueue asks for objects, those that lose something first.
func (r *Reconciler) enqueue(n *snapshot, p Pass, objects map[string]bool) {
	for object := range objects {
		p.Enqueue(r.urgency(n, object), Key{sort: tuples, object: object})
	}
}

// large is how many tuples an object holds that is not compared only to find out whether it loses some.
const large = 256

// urgency is the priority of an object: first come those that lose something, then those that may.
func (r *Reconciler) urgency(n *snapshot, object string) int {
	switch size := r.copy.size(object); {
	case size == 0:
		return changes
	case size > large:
		return mayTake
	case r.copy.holds(n, object):
		return changes
	}
	has, _ := r.copy.has(n.of.storeID, object)
	if _, remove := r.difference(n, object, has); len(remove) > 0 {
		return revokes
	}
	return changes
}
