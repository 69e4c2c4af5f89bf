package ledger

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
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
	// infos are the AccountInfos by which a Store declares more.
	infos []event.Key
	// modelID is that of the model of a Store's OpenFGA store.
	modelID string
	// former means that the object lives, and this is a state from before its cluster went back in time.
	former bool
}

// baseSize is roughly what an object's JSON takes beside its texts and tuples, in bytes.
const baseSize = 4096

func storeObject(o view.Object[corev1alpha1.Store]) object {
	s := o.Value
	out := newObject(kinds.Stores(), o.Change, s.ObjectMeta, s.Status.Conditions, corev1alpha1.ModelSynced)
	out.IsStore, out.store = true, o.Key
	out.TargetStoreID, out.modelID = s.Status.StoreID, s.Status.AuthorizationModelID
	out.Declared = tuple.ParseAll(s.Spec.Tuples)
	out.StatusStoreID = s.Status.ManagedTuplesStoreID
	out.Record = recordOfStore(s)
	if live := s.Status.Live; live != nil {
		out.text(s.Spec.CoreModule, live.CoreModule, live.Generation)
	} else {
		out.text(s.Spec.CoreModule, s.Spec.CoreModule, 0)
	}
	return out
}

// text notes whether the module that is live is the object's present one. Of a text that this generation brought that is
// so when store-sync says it, and not when it is about to write the model. Both texts are in the object, or will be.
func (o *object) text(now, live string, generation int64) {
	o.Outdated = now != live || generation == o.Generation && !o.ModuleLive
	o.Size += quoted(now) + max(quoted(now), quoted(live))
}

// modelObject is an AuthorizationModel that belongs to the given Store, if there is one, with its OpenFGA store.
func modelObject(o view.Object[corev1alpha1.AuthorizationModel], of *corev1alpha1.Store, target string) object {
	m := o.Value
	out := newObject(kinds.AuthorizationModels(), o.Change, m.ObjectMeta, m.Status.Conditions, corev1alpha1.Merged)
	out.TargetStoreID, out.store = target, m.Spec.StoreRef.Key(o.Key.Cluster)
	out.Declared = tuple.ParseAll(m.Spec.Tuples)
	out.StatusStoreID = m.Status.StoreID
	out.Record = recordOfModel(m, target)
	if live := m.Status.Live; live != nil && of != nil && live.StoreUID == of.UID {
		out.text(m.Spec.Model, live.Model, live.Generation)
	} else {
		out.text(m.Spec.Model, m.Spec.Model, 0)
	}
	return out
}

// deletedObject is one that was deleted past us, with the condition that we wrote last.
func deletedObject(last event.Change, r plan.Record, c plan.Condition) object {
	kind, _ := kinds.Of(last.Key.GroupResource)
	return object{kind: kind, change: last, Owner: plan.Owner{Key: last.Key, UID: last.UID, Deleted: true, Record: r, Condition: c}}
}

// formerObject is what a living object was before its cluster went back in time. It is an owner of
// its own, which wants nothing any more.
func formerObject(last event.Change, r plan.Record, c plan.Condition) object {
	o := deletedObject(last, r, c)
	o.UID, o.former = last.UID+"@"+last.Epoch, true
	return o
}

// newObject sets what is alike for all kinds. The condition named by module is where
// store-sync decides on the object's module.
func newObject(kind kinds.Kind, change event.Change, m metav1.ObjectMeta, conditions []metav1.Condition, module string) object {
	out := object{kind: kind, change: change, conditions: conditions, Owner: plan.Owner{
		Key: change.Key, UID: change.UID, Generation: change.Generation, Created: m.CreationTimestamp.Time,
		Deleting: m.DeletionTimestamp != nil, HasFinalizer: slices.Contains(m.Finalizers, corev1alpha1.TuplesFinalizer), Size: baseSize,
	}}
	out.Condition = conditionIn(conditions)
	if c := meta.FindStatusCondition(conditions, module); c != nil && c.ObservedGeneration == change.Generation {
		out.ModuleJudged, out.ModuleLive = true, c.Status == metav1.ConditionTrue
	}
	for _, text := range m.Annotations {
		out.Size += quoted(text)
	}
	return out
}

// conditionIn is the condition that we wrote last.
func conditionIn(conditions []metav1.Condition) plan.Condition {
	c := meta.FindStatusCondition(conditions, corev1alpha1.TuplesSynced)
	if c == nil {
		return plan.Condition{}
	}
	return plan.Condition{OK: c.Status == metav1.ConditionTrue, Reason: c.Reason, Message: c.Message, Generation: c.ObservedGeneration}
}

func recordOfStore(s *corev1alpha1.Store) plan.Record {
	return record(s.Status.ManagedTuplesStoreID, s.Status.ManagedTuples, s.Status.StoreID)
}

func recordOfModel(m *corev1alpha1.AuthorizationModel, target string) plan.Record {
	return record(m.Status.StoreID, m.Status.ManagedTuples, target)
}

// record reads one of a status. One without a store is from before there was such a field:
// then it speaks of the store that the object belongs to.
func record(storeID string, tuples []corev1alpha1.Tuple, target string) plan.Record {
	switch {
	case len(tuples) == 0:
		return plan.Record{}
	case storeID == "":
		storeID = target
	}
	return plan.Record{StoreID: storeID, Tuples: tuple.ParseAll(tuples)}
}

// quoted is about what a text takes in JSON.
func quoted(text string) int {
	return len(text) + strings.Count(text, "\n") + strings.Count(text, `"`) + strings.Count(text, "\t") + strings.Count(text, `\`)
}

// sameFor means that a plan made for one state holds for the other. Nobody but us writes our
// condition: another one is that of a predecessor, who may have been at work since. What is declared
// is compared, too: the bus may have told what the API server does not say.
func sameFor(was, now object) bool {
	return was.UID == now.UID && was.Generation == now.Generation && was.HasFinalizer == now.HasFinalizer && was.Condition == now.Condition &&
		was.Outdated == now.Outdated && was.TargetStoreID == now.TargetStoreID && was.modelID == now.modelID &&
		slices.Equal(was.Declared, now.Declared) && was.Record.StoreID == now.Record.StoreID && slices.Equal(was.Record.Tuples, now.Record.Tuples)
}
