package mirror

import (
	"context"
	"fmt"
	"log/slog"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/tuple-sync/mirror/plan"
)

// home is what was found out last of the OpenFGA store that the Store names.
type home struct {
	// uid is the Store's.
	uid, storeID string
	// adopted says that it is ours: in others nothing is changed.
	adopted bool
	// obstacle is why nothing of IAM is in force there, if that is known.
	obstacle *condition.Condition
}

func newHome(store view.Object[corev1alpha1.Store]) *home {
	return &home{uid: store.UID, storeID: store.Value.Status.StoreID}
}

// homeOf is what is known of the OpenFGA store that a Store names.
func (r *Reconciler) homeOf(store view.Object[corev1alpha1.Store]) home {
	if h := r.home.Load(); h != nil && h.uid == store.UID && h.storeID == store.Value.Status.StoreID {
		return *h
	}
	return home{}
}

// obstacle is why nothing of IAM is in force; nil if there is no reason, or nobody knows it yet.
func (r *Reconciler) obstacle() *condition.Condition {
	store, known := r.State.where()
	switch {
	case !known:
		return missing(fmt.Sprintf("there is no Store %s with a model in OpenFGA: nobody has anything of IAM there", r.State.store.Name))
	case r.State.ends(store):
		return missing(fmt.Sprintf("Store %s is to go, and nothing is registered any more: all of IAM goes from OpenFGA", store.Key.Name))
	}
	return r.homeOf(store).obstacle
}

func missing(message string) *condition.Condition {
	return &condition.Condition{Type: iamv1alpha1.Ready, Status: metav1.ConditionUnknown, Reason: iamv1alpha1.NoIAMStore, Message: message}
}

// locate finds out whether OpenFGA has the store that the Store names, and whether it is ours. OpenFGA takes tuples for one
// that was deleted, and nobody sees them: store-sync makes another, unless the Store is to go.
func (r *Reconciler) locate(ctx context.Context, p Pass) error {
	return reconcile.Retry(p.Key, func() error {
		store, known := r.State.where()
		if !known {
			r.home.Store(nil)
			return nil
		}
		id := store.Value.Status.StoreID
		_, found, err := r.OpenFGA.GetStore(ctx, id)
		switch {
		case err != nil:
			return err
		case found:
			return r.adopt(ctx, store)
		}
		r.copy.forget()
		h := newHome(store)
		h.obstacle = missing(fmt.Sprintf("OpenFGA does not have store %s any more; store-sync makes another", id))
		r.home.Store(h)
		if r.State.ends(store) {
			r.emptied.Store(true)
			return nil
		}
		return fault.Unavailable(fmt.Errorf("following %s: %w", id, fga.ErrStoreNotFound))
	})
}

// adopt finds out whether an OpenFGA store is ours. One that was stays so as long as somebody says it: whoever takes the tuple
// away that names us does not stop anybody from taking other things away.
func (r *Reconciler) adopt(ctx context.Context, store view.Object[corev1alpha1.Store]) error {
	cluster, err := r.Cluster.Epoch(ctx)
	if err != nil {
		return err
	}
	owner := iam.StoreOwner(store.Key.Name, cluster)
	if r.homeOf(store).adopted && iam.Declares(store.Value, owner) {
		return nil
	}
	named, err := r.OpenFGA.Owners(ctx, store.Value.Status.StoreID)
	if err != nil {
		return err
	}
	h := newHome(store)
	adopted, refusal := iam.Adoption(store.Value, owner, named)
	if h.adopted = adopted; adopted {
		if err := r.Confirmer.Confirm(ctx, storeSays(store)); err != nil {
			return err // Nobody takes a store over on the word of the bus.
		}
	} else if r.emptied.Store(true); refusal != "" {
		h.obstacle = &condition.Condition{
			Type: iamv1alpha1.Ready, Status: metav1.ConditionFalse, Reason: iamv1alpha1.NotAdopted, Message: plan.NotAdopted(store.Value, refusal),
		}
	}
	r.home.Store(h)
	return nil
}

// tell has all that is declared say why it is not in force, once that is another reason than before, and the Store itself if
// its OpenFGA store is not ours.
func (r *Reconciler) tell(ctx context.Context, p Pass) {
	why := condition.Condition{}
	if is := r.obstacle(); is != nil {
		why = *is
	}
	if why == r.told {
		return
	}
	r.told = why
	r.refused.Set(0)
	for _, kind := range r.State.kinds {
		for _, k := range kind.keys() {
			p.Enqueue(statuses, Key{sort: status, owner: k})
		}
	}
	if store, known := r.State.where(); known && why.Reason == iamv1alpha1.NotAdopted {
		r.refused.Set(1)
		r.Log.WarnContext(ctx, "IAM store is not known to be ours", slog.String("store_id", store.Value.Status.StoreID))
		r.Status.Note(ctx, store.Change, condition.Note{Warning: true, Reason: why.Reason, Message: why.Message})
	}
}
