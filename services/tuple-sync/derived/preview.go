package derived

import (
	"context"
	"slices"

	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// Preview describes the effect of adopting an OpenFGA store as the IAM store.
type Preview struct {
	// StoreID is the OpenFGA store that the Store names, otherwise the oldest of its name. It is empty without such a
	// store.
	StoreID string
	// Adopted means that this cluster owns the store already. If not, Message gives the reason and the remedy.
	Adopted bool
	Message string
	objects *iam.Lookup
	ends    bool
}

// Preview returns the effect of adopting the OpenFGA store. It changes nothing.
func (r *Reconciler) Preview(ctx context.Context) (Preview, error) {
	p := Preview{}
	if why := r.currentObstacle(); why != nil {
		p.Message = why.Message
	}
	store, known := r.State.iamStore()
	if known {
		model, err := r.Models.Get(ctx, store.Value.Status.StoreID, store.Value.Status.AuthorizationModelID)
		of := r.State.basisOf(store)
		p.StoreID, p.Adopted, p.ends = of.storeID, r.homeOf(store).adopted, of.ends
		if model != nil {
			p.objects = r.State.declaredObjects(of, model)
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

// Undeclared returns the held tuples that an adoption removes: tuples of IAM's types that no object declares. Without a
// model no tuple counts as declared, because the types of the future model are unknown.
func (p Preview) Undeclared(held []tuple.Tuple) (all []tuple.Tuple) {
	for _, t := range held {
		if iam.IsOwnObject(t.Object) && !p.contains(t) {
			all = append(all, t)
		}
	}
	return all
}

func (p Preview) contains(t tuple.Tuple) bool {
	return p.objects != nil && !p.ends && slices.ContainsFunc(p.objects.Wanted(t.Object), func(w iam.Tuple) bool { return convertTuple(w) == t })
}
