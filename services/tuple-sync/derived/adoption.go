package derived

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
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/tuple-sync/derived/plan"
)

// storeState holds the last finding about the OpenFGA store that the Store names.
type storeState struct {
	// uid is the UID of the Store.
	uid, storeID string
	// adopted means that this cluster owns the OpenFGA store. Without it, nothing is changed there.
	adopted bool
	// obstacle holds the known reason why nothing of IAM is in force; nil without one.
	obstacle *condition.Condition
}

func newStoreState(store informer.Object[corev1alpha1.Store]) *storeState {
	return &storeState{uid: store.UID, storeID: store.Value.Status.StoreID}
}

// storeStateOf returns the finding about the OpenFGA store that a Store names.
func (r *Reconciler) storeStateOf(store informer.Object[corev1alpha1.Store]) storeState {
	if h := r.home.Load(); h != nil && h.uid == store.UID && h.storeID == store.Value.Status.StoreID {
		return *h
	}
	return storeState{}
}

// iamStoreObstacle returns the reason why nothing of IAM is in force. It returns nil if no reason exists, or none is known yet.
func (r *Reconciler) iamStoreObstacle() *condition.Condition {
	store, known := r.State.iamStore()
	switch {
	case !known:
		return noIAMStoreCondition(fmt.Sprintf("Store %s has no model in OpenFGA, so OpenFGA holds nothing of IAM", r.State.store.Name))
	case r.State.isStoreDeletable(store):
		return noIAMStoreCondition(fmt.Sprintf(
			"Store %s is being deleted and no kind is registered: all tuples of IAM are removed from OpenFGA", store.Key.Name))
	}
	return r.storeStateOf(store).obstacle
}

func noIAMStoreCondition(message string) *condition.Condition {
	return &condition.Condition{Type: iamv1alpha1.Ready, Status: metav1.ConditionUnknown, Reason: iamv1alpha1.NoIAMStore, Message: message}
}

// checkStoreAndOwner checks whether OpenFGA has the store that the Store names, and whether this cluster owns it. The check is
// needed because OpenFGA accepts tuples for a deleted store, where they have no effect. store-sync creates another
// store, unless the Store is being deleted.
func (r *Reconciler) checkStoreAndOwner(ctx context.Context, p ReconcileRequest) error {
	return reconcile.RetryWhileStale(p.Key, func() error {
		store, known := r.State.iamStore()
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
			return r.checkAdoption(ctx, store)
		}
		r.copy.dropReplica()
		h := newStoreState(store)
		h.obstacle = noIAMStoreCondition(fmt.Sprintf("OpenFGA does not have store %s any more; store-sync makes another", id))
		r.home.Store(h)
		if r.State.isStoreDeletable(store) {
			r.emptied.Store(true)
			return nil
		}
		return fault.Unavailable(fmt.Errorf("following %s: %w", id, fga.ErrStoreNotFound))
	})
}

// checkAdoption checks whether this cluster owns an OpenFGA store. An adopted store stays adopted while the Store's status
// declares it. Deleting the owner tuple therefore does not stop the removal of other tuples.
func (r *Reconciler) checkAdoption(ctx context.Context, store informer.Object[corev1alpha1.Store]) error {
	cluster, err := r.Cluster.ClusterUID(ctx)
	if err != nil {
		return err
	}
	owner := iam.StoreOwnerTuple(store.Key.Name, cluster)
	if r.storeStateOf(store).adopted && iam.HasDeclaredOwner(store.Value, owner) {
		return nil
	}
	named, err := r.OpenFGA.ReadStoreOwnerTuples(ctx, store.Value.Status.StoreID)
	if err != nil {
		return err
	}
	h := newStoreState(store)
	adopted, refusal := iam.DecideAdoption(store.Value, owner, named)
	if h.adopted = adopted; adopted {
		if err := r.Verifier.Verify(ctx, expectedStore(store)); err != nil {
			return err // An adopted store loses all tuples that no object declares.
		}
	} else if r.emptied.Store(true); refusal != "" {
		h.obstacle = &condition.Condition{
			Type: iamv1alpha1.Ready, Status: metav1.ConditionFalse, Reason: iamv1alpha1.NotAdopted, Message: plan.NotAdoptedMessage(store.Value, refusal),
		}
	}
	r.home.Store(h)
	return nil
}

// reportObstacle enqueues the status of every declared object when the obstacle changed. If the store is not adopted, it also
// logs that and writes an event for the Store.
func (r *Reconciler) reportObstacle(ctx context.Context, p ReconcileRequest) {
	why := condition.Condition{}
	if is := r.iamStoreObstacle(); is != nil {
		why = *is
	}
	if why == r.told {
		return
	}
	r.told = why
	r.refused.Set(0)
	for _, kind := range r.State.kinds {
		for _, k := range kind.liveKeys() {
			p.Enqueue(statuses, Key{sort: status, owner: k})
		}
	}
	if store, known := r.State.iamStore(); known && why.Reason == iamv1alpha1.NotAdopted {
		r.refused.Set(1)
		r.Log.WarnContext(ctx, "IAM store is not known to be ours", slog.String("store_id", store.Value.Status.StoreID))
		r.Status.RecordEvents(ctx, store.Change, condition.EventContent{Warning: true, Reason: why.Reason, Message: why.Message})
	}
}
