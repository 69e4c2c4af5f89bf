package declared

import (
	"cmp"
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
)

// maxConflicts bounds the attempts to write one status while others write the same object.
const maxConflicts = 8

// storeStatusFields and modelStatusFields hold the status fields that tuple-sync owns.
type storeStatusFields struct {
	ManagedTuples        []corev1alpha1.Tuple        `json:"managedTuples,omitempty"`
	Ledger               *corev1alpha1.Ledger        `json:"ledger,omitempty"`
	ManagedTuplesStoreID string                      `json:"managedTuplesStoreId,omitempty"`
	RemovedTuples        *corev1alpha1.RemovedTuples `json:"removedTuples,omitempty"`
	TupleCount           int                         `json:"tupleCount"`
	ObservedGeneration   int64                       `json:"observedGeneration"`
	Conditions           []metav1.Condition          `json:"conditions"`
}

type modelStatusFields struct {
	ManagedTuples      []corev1alpha1.Tuple `json:"managedTuples,omitempty"`
	Ledger             *corev1alpha1.Ledger `json:"ledger,omitempty"`
	TupleCount         int                  `json:"tupleCount"`
	StoreID            string               `json:"storeId,omitempty"`
	ObservedGeneration int64                `json:"observedGeneration"`
	Conditions         []metav1.Condition   `json:"conditions"`
}

// statusFields converts u to the status fields that tuple-sync owns.
func (o *ownerObject) statusFields(p *tupleListCache, u *plan.StatusUpdate) (any, error) {
	r, err := o.recorded.encodeRecord(p, u.Record.StoreID, u.Record.Tuples, u.Condition.Reason == plan.Syncing)
	if err != nil {
		return nil, err
	}
	if o.unreadable != nil {
		r = o.recorded
	}
	count := len(u.Record.Tuples)
	conditions := condition.MergeConditions(o.conditions, []string{
		corev1alpha1.TuplesSynced, corev1alpha1.Ready,
		corev1alpha1.RemovalsRecorded,
	}, 0, metav1.Time{})
	setCondition(&conditions, corev1alpha1.TuplesSynced, u.Condition)
	setCondition(&conditions, corev1alpha1.Ready, u.Ready)
	if o.IsStore {
		removed := cmp.Or(u.Removed, o.removed)
		if removed != nil {
			setCondition(&conditions, corev1alpha1.RemovalsRecorded, plan.RemovalsRecordedCondition(removed, o.Generation))
		}
		return storeStatusFields{
			ManagedTuples: r.Tuples, Ledger: r.Ledger, ManagedTuplesStoreID: u.StoreID, TupleCount: count, RemovedTuples: removed,
			ObservedGeneration: u.Ready.Generation, Conditions: conditions,
		}, nil
	}
	return modelStatusFields{
		ManagedTuples: r.Tuples, Ledger: r.Ledger, StoreID: u.StoreID, TupleCount: count,
		ObservedGeneration: u.Ready.Generation, Conditions: conditions,
	}, nil
}

// setCondition sets a condition, unless it has no reason yet. Package plan bounds its message.
func setCondition(conditions *[]metav1.Condition, typ string, c plan.OwnerCondition) {
	if c.Reason == "" {
		return
	}
	status := condition.New(typ, c.OK, c.Reason, c.Message).Status
	if c.Unknown {
		status = metav1.ConditionUnknown
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: typ, Status: status, Reason: c.Reason, Message: c.Message, ObservedGeneration: c.Generation,
	})
}

// writeStatus writes a status by compare-and-swap. It tries again if the object changed in ways that the plan does not
// depend on.
func (a *planApplier) writeStatus(ctx context.Context, p *passState, o *ownerObject, u *plan.StatusUpdate) error {
	if u == nil {
		return nil
	}
	if u.Removed == nil {
		u.Removed = a.newRemovalsRecord(p.key.StoreID, o)
	}
	for range maxConflicts {
		fields, err := o.statusFields(a.state.packs, u)
		if err != nil {
			return err
		}
		_, err = a.status.ApplyOwnFields(ctx, p.reporter, o.kind, o.change, fields)
		if errors.Is(err, kube.ErrNotFound) {
			err = a.status.RefreshAsStale(ctx, o.kind, o.change)
		}
		stale := errors.Is(err, reconcile.ErrStale)
		if err != nil && !stale {
			return err
		}
		if !stale {
			o.Record, o.Condition, o.Ready = u.Record, u.Condition, u.Ready
			o.removed = cmp.Or(u.Removed, o.removed)
			a.records.keepVerifiedRecord(p.key.StoreID, *o)
		}
		if err := a.refreshObject(o); err != nil || !stale {
			return err
		}
	}
	return reconcile.ErrStale
}

// refreshObject replaces o by its newest state. It returns [reconcile.ErrStale] if the plan does not hold for that.
func (a *planApplier) refreshObject(o *ownerObject) error {
	now, ok := a.state.findObject(o.Key)
	if !ok || !isEqualForPlan(*o, now) {
		return reconcile.ErrStale
	}
	now.Contested = o.Contested
	*o = now
	return nil
}

// reportOutcomes stores the records that are verified now, and reports the outcome of each object.
func (a *planApplier) reportOutcomes(p *passState, s *planSnapshot, decided plan.Plan) {
	for _, action := range decided.Actions {
		o := s.objects[action.Evaluation.Owner.UID]
		if o.Deleted && o.Contested == 0 {
			a.records.markCleanedUp(p.key.StoreID, *o)
		} else if action.Evaluation.HasCompleteRecordAfterPlan() && s.input.Model != nil {
			a.records.keepVerifiedRecord(p.key.StoreID, *o)
		}
		if _, taken := a.state.findObject(o.Key); taken && o.Deleted {
			continue // The outcome of the present object of the name counts.
		}
		outcome, message := outcomeOfCondition(action.NextCondition)
		if err, ok := p.unwritable[o.UID]; ok {
			outcome, message = eventv1.Outcome_OUTCOME_REJECTED, err.Error()
		}
		p.reporter.Report(o.change, outcome, message)
	}
}

func outcomeOfCondition(c plan.OwnerCondition) (eventv1.Outcome, string) {
	switch c.Reason {
	case plan.Invalid:
		return eventv1.Outcome_OUTCOME_REJECTED, c.Message
	case plan.Pending, plan.StoreNotFound, plan.Syncing:
		return eventv1.Outcome_OUTCOME_PENDING, c.Message
	}
	return eventv1.Outcome_OUTCOME_APPLIED, ""
}
