package tuplesync

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/tuple-sync/plan"
)

// object is an owner together with what it takes to write to it.
type object struct {
	plan.Owner
	kind kinds.Kind
	// change is the state that the facts are from, without the object's bytes.
	change event.Change
	// store names the Store that it belongs to.
	store event.Key
	// conditions of the object, of all services.
	conditions []metav1.Condition
	// model is the id of the model of a Store's OpenFGA store.
	model string
}

// about is roughly what an object's JSON takes beside its texts and tuples, in bytes.
const about = 4096

func storeObject(o view.Object[corev1alpha1.Store]) object {
	s := o.Value
	out := newObject(kinds.Stores(), o.Change, s.ObjectMeta, s.Status.Conditions, corev1alpha1.ModelSynced)
	out.Principal, out.store = true, o.Key
	out.Home, out.model = s.Status.StoreID, s.Status.AuthorizationModelID
	out.Declared = plan.ParseAll(s.Spec.Tuples)
	out.Named = s.Status.ManagedTuplesStoreID
	out.Record = record(s.Status.ManagedTuplesStoreID, s.Status.ManagedTuples, out.Home)
	out.Bulk += quoted(s.Spec.CoreModule)
	return out
}

// modelObject is an AuthorizationModel that belongs to a Store with the given OpenFGA store.
func modelObject(o view.Object[corev1alpha1.AuthorizationModel], home string) object {
	m := o.Value
	out := newObject(kinds.AuthorizationModels(), o.Change, m.ObjectMeta, m.Status.Conditions, corev1alpha1.Merged)
	out.Home, out.store = home, storeKey(o)
	out.Declared = plan.ParseAll(m.Spec.Tuples)
	out.Named = m.Status.StoreID
	out.Record = record(m.Status.StoreID, m.Status.ManagedTuples, home)
	out.Bulk += quoted(m.Spec.Model)
	return out
}

// newObject sets what is alike for all kinds. The condition named by module is where
// store-sync rules on the object's module.
func newObject(kind kinds.Kind, change event.Change, m metav1.ObjectMeta, conditions []metav1.Condition, module string) object {
	out := object{kind: kind, change: change, conditions: conditions, Owner: plan.Owner{
		Key: change.Key, UID: change.UID, Generation: change.Generation, Created: m.CreationTimestamp.Time,
		Deleting: m.DeletionTimestamp != nil, Held: slices.Contains(m.Finalizers, corev1alpha1.TuplesFinalizer), Bulk: about,
	}}
	if c := meta.FindStatusCondition(conditions, corev1alpha1.TuplesSynced); c != nil {
		out.Condition = plan.Condition{OK: c.Status == metav1.ConditionTrue, Reason: c.Reason, Message: c.Message, Generation: c.ObservedGeneration}
	}
	if c := meta.FindStatusCondition(conditions, module); c != nil && c.ObservedGeneration == change.Generation {
		out.Judged, out.Live = true, c.Status == metav1.ConditionTrue
	}
	for _, text := range m.Annotations {
		out.Bulk += quoted(text)
	}
	return out
}

// record reads a ledger. One without a store is from before there was such a field:
// then it speaks of the store that the object belongs to.
func record(storeID string, tuples []corev1alpha1.Tuple, home string) plan.Record {
	switch {
	case len(tuples) == 0:
		return plan.Record{}
	case storeID == "":
		storeID = home
	}
	return plan.Record{StoreID: storeID, Tuples: plan.ParseAll(tuples)}
}

// quoted is about what a text takes in JSON.
func quoted(text string) int {
	return len(text) + strings.Count(text, "\n") + strings.Count(text, `"`) + strings.Count(text, "\t") + strings.Count(text, `\`)
}

// storeStatus and modelStatus are the parts of a status that are ours.
type storeStatus struct {
	ManagedTuples        []corev1alpha1.Tuple `json:"managedTuples,omitempty"`
	ManagedTuplesStoreID string               `json:"managedTuplesStoreId,omitempty"`
	TupleCount           int                  `json:"tupleCount"`
	Conditions           []metav1.Condition   `json:"conditions"`
}

type modelStatus struct {
	ManagedTuples []corev1alpha1.Tuple `json:"managedTuples,omitempty"`
	StoreID       string               `json:"storeId,omitempty"`
	Conditions    []metav1.Condition   `json:"conditions"`
}

// status is e as part of the object's status.
func (o *object) status(e *plan.Entry) any {
	tuples := make([]corev1alpha1.Tuple, len(e.Record.Tuples))
	for i, t := range e.Record.Tuples {
		tuples[i] = t.Declared()
	}
	condition := metav1.Condition{
		Type: corev1alpha1.TuplesSynced, Status: metav1.ConditionFalse, ObservedGeneration: e.Condition.Generation,
		Reason: e.Condition.Reason, Message: e.Condition.Message,
	}
	if e.Condition.OK {
		condition.Status = metav1.ConditionTrue
	}
	all := kube.SetCondition(o.conditions, condition)
	ours := []metav1.Condition{*meta.FindStatusCondition(all, corev1alpha1.TuplesSynced)}
	if o.Principal {
		return storeStatus{ManagedTuples: tuples, ManagedTuplesStoreID: e.Named, TupleCount: len(tuples), Conditions: ours}
	}
	return modelStatus{ManagedTuples: tuples, StoreID: e.Named, Conditions: ours}
}
