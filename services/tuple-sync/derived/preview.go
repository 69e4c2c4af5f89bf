package derived

import (
	"context"
	"slices"

	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// AdoptionPreview describes the effect of adopting an OpenFGA store as the IAM store.
type AdoptionPreview struct {
	// StoreID is the OpenFGA store that the Store names, otherwise the oldest of its name. It is empty without such a
	// store.
	StoreID string
	// Adopted means that this cluster owns the store already. If not, Message gives the reason and the remedy.
	Adopted bool
	Message string
	objects *iam.DeclaredObjects
	ends    bool
}

// PreviewAdoption returns the effect of adopting the OpenFGA store. It changes nothing.
func (r *Reconciler) PreviewAdoption(ctx context.Context) (AdoptionPreview, error) {
	p := AdoptionPreview{}
	if why := r.iamStoreObstacle(); why != nil {
		p.Message = why.Message
	}
	store, known := r.State.iamStore()
	if known {
		model, err := r.Models.Get(ctx, store.Value.Status.StoreID, store.Value.Status.AuthorizationModelID)
		of := r.State.currentInputIdentity(store)
		p.StoreID, p.Adopted, p.ends = of.storeID, r.storeStateOf(store).adopted, of.ends
		if model != nil {
			p.objects = r.State.declaredLookup(of, model)
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

// UndeclaredTuples returns the held tuples that an adoption removes: tuples of IAM's types that no object declares. Without a
// model no tuple counts as declared, because the types of the future model are unknown.
func (p AdoptionPreview) UndeclaredTuples(held []tuple.Tuple) (all []tuple.Tuple) {
	for _, t := range held {
		if iam.IsIAMObject(t.Object) && !p.isDeclared(t) {
			all = append(all, t)
		}
	}
	return all
}

func (p AdoptionPreview) isDeclared(t tuple.Tuple) bool {
	return p.objects != nil && !p.ends && slices.ContainsFunc(p.objects.DesiredTuples(t.Object), func(w iam.Tuple) bool { return fromIAMTuple(w) == t })
}
