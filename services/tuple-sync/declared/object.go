package declared

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
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
)

// ownerObject is an owner with everything needed to write its status.
type ownerObject struct {
	plan.Owner
	kind kinds.Kind
	// change is the state that the facts come from, without the object's bytes.
	change event.Change
	// conditions holds the conditions of all services.
	conditions []metav1.Condition
	// infos lists the AccountInfos that add member tuples to a Store.
	infos []event.Key
	// modelID is the model of a Store's OpenFGA store. For an AuthorizationModel it is the first model that contains
	// it.
	modelID string
	// recorded is the record as stored; unreadable is the error of reading it.
	recorded   statusRecord
	unreadable error
	// removed is a Store's record of removed tuples.
	removed *corev1alpha1.RemovedTuples
	// former means that the object lives, and this state is from before its cluster's history was rewound.
	former bool
}

// baseSize estimates the JSON of an object without texts and tuples, in bytes.
const baseSize = 4096

func newStoreObject(p *tupleListCache, o informer.Object[corev1alpha1.Store]) ownerObject {
	s := o.Value
	out := newOwnerObject(kinds.Stores(), o.Change, s.ObjectMeta, s.Status.Conditions)
	out.readStoreSyncConditions(s.Status.ModelDigest, s.ModelDigest(), corev1alpha1.StoreSynced, corev1alpha1.ModelSynced)
	out.IsStore, out.Store = true, o.Key
	out.TargetStoreID, out.modelID = s.Status.StoreID, s.Status.AuthorizationModelID
	out.Declared = p.parseDeclaredList(s.Spec.Tuples)
	out.StatusStoreID = s.Status.ManagedTuplesStoreID
	out.setRecord(p, storedRecordOfStore(s))
	if out.removed = s.Status.RemovedTuples; out.removed != nil {
		out.Size += base64.StdEncoding.EncodedLen(len(out.removed.Data))
	}
	if live := s.Status.Live; live != nil {
		out.setModuleOutdated(s.Spec.CoreModule, live.CoreModule, live.Generation)
	} else {
		out.setModuleOutdated(s.Spec.CoreModule, s.Spec.CoreModule, 0)
	}
	return out
}

// setModuleOutdated sets Outdated if the live module is not the object's present one. A module of this generation counts as live
// only once store-sync reports so, not while it writes the model. Size counts both texts, because the object holds or
// will hold both.
func (o *ownerObject) setModuleOutdated(now, live string, generation int64) {
	o.Outdated = now != live || generation == o.Generation && !o.ModuleLive
	o.Size += quotedSize(now) + max(quotedSize(now), quotedSize(live))
}

// newModelObject returns the object of an AuthorizationModel. of is its Store, or nil, and target the OpenFGA store.
func newModelObject(p *tupleListCache, o informer.Object[corev1alpha1.AuthorizationModel], of *corev1alpha1.Store, target string) ownerObject {
	m := o.Value
	out := newOwnerObject(kinds.AuthorizationModels(), o.Change, m.ObjectMeta, m.Status.Conditions)
	out.readStoreSyncConditions(m.Status.ModelDigest, m.ModelDigest(target), corev1alpha1.Merged)
	out.TargetStoreID, out.Store, out.modelID = target, m.Spec.StoreRef.Key(o.Key.Cluster), m.Status.AuthorizationModelID
	out.Declared = p.parseDeclaredList(m.Spec.Tuples)
	out.StatusStoreID = m.Status.StoreID
	out.setRecord(p, storedRecordOfModel(m, target))
	if live := m.Status.Live; live != nil && of != nil && live.StoreUID == of.UID {
		out.setModuleOutdated(m.Spec.Model, live.Model, live.Generation)
	} else {
		out.setModuleOutdated(m.Spec.Model, m.Spec.Model, 0)
	}
	return out
}

// setRecord sets the record of an object.
func (o *ownerObject) setRecord(p *tupleListCache, r statusRecord) {
	o.recorded = r
	o.Record, o.unreadable = r.decodeRecord(p)
}

// newDeletedObject returns an object that was deleted without our finalizer, with the last condition that we wrote.
func newDeletedObject(last event.Change, r plan.TupleRecord, c plan.OwnerCondition) ownerObject {
	kind, _ := kinds.ByResource(last.Key.GroupResource)
	return ownerObject{kind: kind, change: last, Owner: plan.Owner{Key: last.Key, UID: last.UID, Deleted: true, Record: r, Condition: c}}
}

// newObjectBeforeRewind returns the state of a living object from before its cluster's history was rewound. It is an owner of
// its own, and declares nothing.
func newObjectBeforeRewind(last event.Change, r plan.TupleRecord, c plan.OwnerCondition) ownerObject {
	o := newDeletedObject(last, r, c)
	o.UID, o.former = last.UID+"@"+last.Epoch, true
	return o
}

// newOwnerObject sets the fields that all kinds share.
func newOwnerObject(kind kinds.Kind, change event.Change, m metav1.ObjectMeta, conditions []metav1.Condition) ownerObject {
	out := ownerObject{kind: kind, change: change, conditions: conditions, Owner: plan.Owner{
		Key: change.Key, UID: change.UID, Generation: change.Generation, Created: m.CreationTimestamp.Time,
		Deleting: m.DeletionTimestamp != nil, HasFinalizer: slices.Contains(m.Finalizers, corev1alpha1.TuplesFinalizer), Size: baseSize,
		Condition: findPlanCondition(conditions, corev1alpha1.TuplesSynced), Ready: findPlanCondition(conditions, corev1alpha1.Ready),
	}}
	if c := meta.FindStatusCondition(conditions, corev1alpha1.Deleting); out.Deleting && c != nil && c.Reason == corev1alpha1.Blocked {
		out.Obstacle = condition.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}
	}
	for _, text := range m.Annotations {
		out.Size += quotedSize(text)
	}
	return out
}

// findPlanCondition returns a condition of ours, or the zero value.
func findPlanCondition(conditions []metav1.Condition, typ string) plan.OwnerCondition {
	c := meta.FindStatusCondition(conditions, typ)
	if c == nil {
		return plan.OwnerCondition{}
	}
	return plan.OwnerCondition{
		OK: c.Status == metav1.ConditionTrue, Unknown: c.Status == metav1.ConditionUnknown,
		Reason: c.Reason, Message: c.Message, Generation: c.ObservedGeneration,
	}
}

// readStoreSyncConditions reads the conditions of store-sync. The last type is its decision on the object's module. A decision holds for
// this generation too, if the model digest is the same.
func (o *ownerObject) readStoreSyncConditions(live, asked string, types ...string) {
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

// quotedSize estimates the bytes of a text in JSON.
func quotedSize(text string) int {
	return len(text) + strings.Count(text, "\n") + strings.Count(text, `"`) + strings.Count(text, "\t") + strings.Count(text, `\`)
}

// isEqualForPlan reports whether a plan made for one state holds for the other. Another condition means that a previous leader
// wrote, and may have changed tuples since. Declared tuples are compared too, because the stream may lag behind the API
// server.
func isEqualForPlan(was, now ownerObject) bool {
	return equality.Semantic.DeepEqual(was.removed, now.removed) && was.UID == now.UID && was.Generation == now.Generation && was.Deleting == now.Deleting &&
		was.HasFinalizer == now.HasFinalizer && was.Condition == now.Condition && was.Outdated == now.Outdated &&
		was.TargetStoreID == now.TargetStoreID && was.modelID == now.modelID &&
		was.Ready == now.Ready && was.Obstacle == now.Obstacle && was.ModuleJudged == now.ModuleJudged && was.ModuleLive == now.ModuleLive &&
		slices.Equal(was.Declared, now.Declared) && was.Record.StoreID == now.Record.StoreID && slices.Equal(was.Record.Tuples, now.Record.Tuples)
}
