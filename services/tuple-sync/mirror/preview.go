package mirror

import (
	"context"
	"slices"

	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// Preview is what becomes of an OpenFGA store that is taken over as the IAM store.
type Preview struct {
	// StoreID is the OpenFGA store: the one that the Store names, else the oldest of its name; empty if there is none.
	StoreID string
	// Adopted says that it is ours already; if not, Message says why, and what to do.
	Adopted bool
	Message string
	objects *iam.Objects
	ends    bool
}

// Preview tells what would become of the OpenFGA store. It changes nothing.
func (r *Reconciler) Preview(ctx context.Context) (Preview, error) {
	p := Preview{}
	if why := r.obstacle(); why != nil {
		p.Message = why.Message
	}
	store, known := r.State.where()
	if known {
		model, err := r.Models.Get(ctx, store.Value.Status.StoreID, store.Value.Status.AuthorizationModelID)
		of := r.State.basis(store)
		p.StoreID, p.Adopted, p.ends = of.storeID, r.homeOf(store).adopted, of.ends
		if model != nil {
			p.objects = r.State.objects(of, model)
		}
		return p, err
	}
	if store.Value != nil {
		p.StoreID = store.Value.Status.StoreID
	}
	if p.StoreID == "" {
		found, err := r.OpenFGA.FindStores(ctx, r.State.store.Name)
		if err != nil || len(found) == 0 {
			return p, err
		}
		p.StoreID = found[0].ID
	}
	return p, nil
}

// Undeclared are those of the tuples that a store holds that go when it is taken over: they are of IAM's types, and nobody
// declares them. As long as there is no model nothing is declared: what it will know, nobody can tell.
func (p Preview) Undeclared(held []tuple.Tuple) (all []tuple.Tuple) {
	for _, t := range held {
		if iam.OwnsObject(t.Object) && !p.declares(t) {
			all = append(all, t)
		}
	}
	return all
}

func (p Preview) declares(t tuple.Tuple) bool {
	return p.objects != nil && !p.ends && slices.ContainsFunc(p.objects.Wanted(t.Object), func(w iam.Tuple) bool { return convert(w) == t })
}
