package plan

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/truncate"
)

// OwnerCondition is a condition of an owner: of its tuples, or Ready.
type OwnerCondition struct {
	// OK means status True, and Unknown status Unknown.
	OK, Unknown     bool
	Reason, Message string
	// Generation is the observed generation.
	Generation int64
}

// Reasons of the condition.
const (
	// Synced: the store holds everything.
	Synced = "Synced"
	// Syncing: the record may list what is not in the store yet.
	Syncing = corev1alpha1.Syncing
	// Pending: something has to appear first.
	Pending = "Pending"
	// Invalid: the store holds everything but some tuples that it cannot hold.
	Invalid = "Invalid"
	// StoreNotFound: there is no Store of the name referred to.
	StoreNotFound = "StoreNotFound"
	// Forbidden: the API server refuses a change that must come first.
	Forbidden = "Forbidden"
	// RecordUnreadable: the object's tuples in the store are unknown.
	RecordUnreadable = corev1alpha1.RecordUnreadable
	// Removed: no tuple is left, and the object can be deleted.
	Removed = "Removed"
)

// Reasons of Ready beside those of the tuples and of store-sync.
const (
	// Ready: everything that the object declares is live.
	Ready = "Ready"
	// ModelPending: store-sync has not decided on this generation yet.
	ModelPending = "ModelPending"
	// Deleting: the object is being deleted.
	Deleting = "Deleting"
)

const (
	// maxListed bounds the tuples that a message lists.
	maxListed = 10
	// maxReason bounds each listed tuple and its reason, in bytes.
	maxReason = 300
	// maxRefusal bounds a message about a refusal of the API server, in bytes.
	maxRefusal = 1024
	// maxSummary bounds the message of Ready, in bytes.
	maxSummary = 1024
)

// UpdateForbiddenCondition returns the condition of an owner that the API server does not let us change.
func UpdateForbiddenCondition(o *Owner, why error) OwnerCondition {
	message := truncate.Line("The API server does not let tuple-sync change this object; tuple-sync tries again: "+why.Error(), maxRefusal)
	return OwnerCondition{Reason: Forbidden, Message: message, Generation: o.Generation}
}

// UnreadableCondition returns the condition of an owner whose record cannot be read.
func UnreadableCondition(o *Owner, why error) OwnerCondition {
	message := truncate.Line("tuple-sync changes no tuple of this object, because it cannot read the record of its tuples: "+why.Error()+
		". Restore the record, or remove status.ledger; then `entail tuples undeclared` lists the tuples that no object declares.", maxRefusal)
	return OwnerCondition{Reason: RecordUnreadable, Message: message, Generation: o.Generation}
}

// ReadyCondition returns Ready, given the condition of the owner's tuples. Ready holds once this generation's module is live, and
// its tuples were checked by that model and are in the store.
func (o *Owner) ReadyCondition(c OwnerCondition) OwnerCondition {
	r := OwnerCondition{Generation: o.Generation}
	switch {
	case o.Deleting && o.Obstacle.Reason == corev1alpha1.Blocked:
		r.Reason, r.Message = Deleting, o.Obstacle.Message
	case o.Deleting:
		r.Reason, r.Message = Deleting, "The object is being deleted."
	case o.isStoreSyncWaiting():
		r.Unknown, r.Reason, r.Message = true, o.Obstacle.Reason, o.Obstacle.Message
	case !o.ModuleJudged:
		r.Reason, r.Message = ModelPending, "store-sync has not processed this generation yet."
	case o.Obstacle.Type != "":
		r.Reason, r.Message = o.Obstacle.Reason, o.Obstacle.Type+": "+o.Obstacle.Message
	case !c.OK:
		r.Reason, r.Message = c.Reason, corev1alpha1.TuplesSynced+": "+c.Message
	default:
		r.OK, r.Reason, r.Message = true, Ready, "Everything that this object declares is in force."
	}
	r.Message = truncate.Text(r.Message, maxSummary)
	return r
}

// isStoreSyncWaiting reports whether OpenFGA does not answer store-sync.
func (o *Owner) isStoreSyncWaiting() bool {
	return o.Obstacle.Type != "" && o.Obstacle.Status == metav1.ConditionUnknown
}

// OutageStatusUpdate returns the status of an owner while OpenFGA is unavailable. It returns nil if the owner is in step, or
// its status reports that already.
func OutageStatusUpdate(o *Owner, message string) *StatusUpdate {
	unavailable := OwnerCondition{Unknown: true, Reason: corev1alpha1.BackendUnavailable, Message: truncate.Text(message, maxSummary), Generation: o.Generation}
	if o.Ready.Generation == o.Generation && o.Condition.Reason != Syncing ||
		o.Ready.Generation == o.Generation && o.Ready.Reason == unavailable.Reason {
		return nil
	}
	u := &StatusUpdate{Record: o.Record, Condition: o.Condition, StoreID: o.StatusStoreID, Ready: unavailable}
	if u.Condition.Reason == "" {
		u.Condition = unavailable
	}
	return u
}

// syncingCondition returns the condition while tuples are being written. It names the writer, so a new leader always changes the
// object. The previous leader's commit then fails.
func (e *Evaluation) syncingCondition(writer string) OwnerCondition {
	return OwnerCondition{Reason: Syncing, Message: fmt.Sprintf("Tuples are being written by %s.", writer), Generation: e.Owner.Generation}
}

// finalCondition returns the condition to write after the plan. It returns false if store-sync has not decided on this
// generation yet, and the condition may wait for that.
func (e *Evaluation) finalCondition(model *Model) (OwnerCondition, bool) {
	c := OwnerCondition{Reason: Pending, Generation: e.Owner.Generation}
	switch e.phase {
	case deleting, deleted:
		c.Reason, c.Message = Removed, "All tuples are removed."
		return c, true
	case leaving:
		c.Reason, c.Message = Syncing, "Tuples move to another store."
		return c, true
	case noStore, storeUnknown:
		c.Message = "The Store has no OpenFGA store yet; its conditions give the reason."
		if e.Owner.StoreMissing {
			c.Reason, c.Message = StoreNotFound, corev1alpha1.StoreNotFoundMessage(e.Owner.Store, e.Owner.Key.Cluster)
		} else if !e.Owner.isRecordInStore() {
			c.Reason = Syncing
		}
		return c, e.Owner.ModuleJudged
	default:
		return e.conditionInStore(model)
	}
}

func (e *Evaluation) conditionInStore(model *Model) (OwnerCondition, bool) {
	c := OwnerCondition{Generation: e.Owner.Generation}
	refused, waiting := e.verdictsInState(Refused), e.verdictsInState(Waiting)
	switch {
	case model == nil && !e.Owner.isRecordInStore() && len(e.desired) > 0:
		c.Reason, c.Message = Syncing, "Tuples are written when the store has a model again."
		return c, true
	case len(refused) > 0:
		c.Reason = Invalid
		c.Message = fmt.Sprintf("%d of %d tuples cannot be in the store: %s Correct them or the model.", len(refused), len(e.Verdicts),
			describeVerdicts(refused))
		if len(waiting) > 0 {
			c.Message += fmt.Sprintf(" %d more wait for the model.", len(waiting))
		}
	case len(waiting) > 0:
		c.Reason = Pending
		c.Message = fmt.Sprintf("%d of %d tuples wait for the model: %s", len(waiting), len(e.Verdicts), describeVerdicts(waiting))
		return c, e.Owner.ModuleJudged
	default:
		c.OK, c.Reason, c.Message = true, Synced, fmt.Sprintf("The store holds all tuples: %d.", len(e.desired))
		return c, e.Owner.ModuleJudged
	}
	return c, true
}

func (e *Evaluation) verdictsInState(s VerdictState) []Verdict {
	var found []Verdict
	for _, v := range e.Verdicts {
		if v.State == s {
			found = append(found, v)
		}
	}
	return found
}

func describeVerdicts(verdicts []Verdict) string {
	var b strings.Builder
	for i, v := range verdicts {
		if i == maxListed {
			fmt.Fprintf(&b, " and %d more.", len(verdicts)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%.*s: %.*s", maxReason, v.ID, maxReason, v.Reason)
	}
	return strings.TrimSuffix(b.String(), ".") + "."
}
