package ledger

import (
	"encoding/base64"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

// object is an owner together with what it takes to write to it.
type object struct {
	plan.Owner
	kind kinds.Kind
	// change is the state that the facts are from, without the object's bytes.
	change event.Change
	// conditions of the object, of all services.
	conditions []metav1.Condition
	// infos are the AccountInfos by which a Store declares more.
	infos []event.Key
	// modelID is that of the model of a Store's OpenFGA store; of an AuthorizationModel, of the first
	// model that it is part of.
	modelID string
	// recorded is where the record is from; unreadable says why it cannot be read.
	recorded   recorded
	unreadable error
	// removed is the record of removed tuples of a Store.
	removed *corev1alpha1.RemovedTuples
	// former means that the object lives, and this is a state from before its cluster went back in time.
	former bool
}

// baseSize is roughly what an object's JSON takes beside its texts and tuples, in bytes.
const baseSize = 4096

func storeObject(p *packs, o view.Object[corev1alpha1.Store]) object {
	s := o.Value
	out := newObject(kinds.Stores(), o.Change, s.ObjectMeta, s.Status.Conditions)
	out.judge(s.Status.ModelDigest, s.ModelDigest(), corev1alpha1.StoreSynced, corev1alpha1.ModelSynced)
	out.IsStore, out.Store = true, o.Key
	out.TargetStoreID, out.modelID = s.Status.StoreID, s.Status.AuthorizationModelID
	out.Declared = p.parse(s.Spec.Tuples)
	out.StatusStoreID = s.Status.ManagedTuplesStoreID
	out.bear(p, recordedOfStore(s))
	if out.removed = s.Status.RemovedTuples; out.removed != nil {
		out.Size += base64.StdEncoding.EncodedLen(len(out.removed.Data))
	}
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
func modelObject(p *packs, o view.Object[corev1alpha1.AuthorizationModel], of *corev1alpha1.Store, target string) object {
	m := o.Value
	out := newObject(kinds.AuthorizationModels(), o.Change, m.ObjectMeta, m.Status.Conditions)
	out.judge(m.Status.ModelDigest, m.ModelDigest(target), corev1alpha1.Merged)
	out.TargetStoreID, out.Store, out.modelID = target, m.Spec.StoreRef.Key(o.Key.Cluster), m.Status.AuthorizationModelID
	out.Declared = p.parse(m.Spec.Tuples)
	out.StatusStoreID = m.Status.StoreID
	out.bear(p, recordedOfModel(m, target))
	if live := m.Status.Live; live != nil && of != nil && live.StoreUID == of.UID {
		out.text(m.Spec.Model, live.Model, live.Generation)
	} else {
		out.text(m.Spec.Model, m.Spec.Model, 0)
	}
	return out
}

// bear takes in the record of an object.
func (o *object) bear(p *packs, r recorded) {
	o.recorded = r
	o.Record, o.unreadable = r.record(p)
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

// newObject sets what is alike for all kinds.
func newObject(kind kinds.Kind, change event.Change, m metav1.ObjectMeta, conditions []metav1.Condition) object {
	out := object{kind: kind, change: change, conditions: conditions, Owner: plan.Owner{
		Key: change.Key, UID: change.UID, Generation: change.Generation, Created: m.CreationTimestamp.Time,
		Deleting: m.DeletionTimestamp != nil, HasFinalizer: slices.Contains(m.Finalizers, corev1alpha1.TuplesFinalizer), Size: baseSize,
		Condition: written(conditions, corev1alpha1.TuplesSynced), Ready: written(conditions, corev1alpha1.Ready),
	}}
	if c := meta.FindStatusCondition(conditions, corev1alpha1.Deleting); out.Deleting && c != nil && c.Reason == corev1alpha1.Blocked {
		out.Obstacle = condition.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}
	}
	for _, text := range m.Annotations {
		out.Size += quoted(text)
	}
	return out
}

// written is a condition that we wrote.
func written(conditions []metav1.Condition, typ string) plan.Condition {
	c := meta.FindStatusCondition(conditions, typ)
	if c == nil {
		return plan.Condition{}
	}
	return plan.Condition{
		OK: c.Status == metav1.ConditionTrue, Unknown: c.Status == metav1.ConditionUnknown,
		Reason: c.Reason, Message: c.Message, Generation: c.ObservedGeneration,
	}
}

// judge takes in what store-sync says, in conditions of these types; the last is where it decides on
// the object's module. What it found is true of this generation, too, if that asks for the same.
func (o *object) judge(live, asked string, types ...string) {
	for i, typ := range types {
		c := meta.FindStatusCondition(o.conditions, typ)
		if c == nil {
			continue
		}
		holds := c.Status == metav1.ConditionTrue
		if !holds && o.Obstacle.Type == "" {
			o.Obstacle = condition.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}
		}
		if i == len(types)-1 {
			same, known := live == asked, holds && live != ""
			o.ModuleJudged = known && same || !known && c.ObservedGeneration == o.Generation && c.Status != metav1.ConditionUnknown
			o.ModuleLive = o.ModuleJudged && holds
		}
	}
}

// quoted is about what a text takes in JSON.
func quoted(text string) int {
	return len(text) + strings.Count(text, "\n") + strings.Count(text, `"`) + strings.Count(text, "\t") + strings.Count(text, `\`)
}

// sameFor means that a plan made for one state holds for the other. Nobody but us writes our
// condition: another one is that of a predecessor, who may have been at work since. What is declared
// is compared, too: the bus may have told what the API server does not say.
func sameFor(was, now object) bool {
	return equality.Semantic.DeepEqual(was.removed, now.removed) && was.UID == now.UID && was.Generation == now.Generation && was.Deleting == now.Deleting &&
		was.HasFinalizer == now.HasFinalizer && was.Condition == now.Condition && was.Outdated == now.Outdated &&
		was.TargetStoreID == now.TargetStoreID && was.modelID == now.modelID &&
		was.Ready == now.Ready && was.Obstacle == now.Obstacle && was.ModuleJudged == now.ModuleJudged && was.ModuleLive == now.ModuleLive &&
		slices.Equal(was.Declared, now.Declared) && was.Record.StoreID == now.Record.StoreID && slices.Equal(was.Record.Tuples, now.Record.Tuples)
}
