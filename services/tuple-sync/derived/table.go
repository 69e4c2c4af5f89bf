package derived

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/verify"
)

// Indexes that the tables of all kinds have.
const (
	// byObject finds an object by its OpenFGA object.
	byObject = "object"
	// byOwner finds the objects of an owner.
	byOwner = "owner"
	// byKin finds objects with owners by their own type and by those of their owners, except types of IAM's kinds.
	byKin = "kin"
)

// sourceObject is a declared object of any kind.
type sourceObject struct {
	change event.Change
	// object is the OpenFGA object for it as a target.
	object string
	meta   *metav1.ObjectMeta
	target iam.BindingTarget
	alive  bool
	// expected is the state with which answers to our writes are compared.
	expected verify.ExpectedState
}

// objectTable is a table of any kind.
type objectTable interface {
	liveOrDeleted(k event.Key) (o sourceObject, live bool)
	bindingTargetOf(object string) (t iam.BindingTarget, alive bool)
	objectsOwnedBy(owner string) []sourceObject
	// hasObjectsOwnedBy reports whether an owner has objects.
	hasObjectsOwnedBy(owner string) bool
	// keysRelatedToType returns the keys of objects with owners that have the type, or an owner of it.
	keysRelatedToType(typ string) []event.Key
	liveKeys() []event.Key
	changeCount() uint64
	resetDrained()
}

// objectConstraint is the constraint on all kinds.
type objectConstraint[T any] interface {
	*T
	metav1.ObjectMetaAccessor
}

// table holds the objects of one kind in this cluster.
type table[T any, P objectConstraint[T]] struct {
	cfg  tableConfig[T]
	rows *informer.Lister[T]

	mu sync.Mutex
	// drained holds, by name, the newest deleted state whose OpenFGA objects were empty at the last check. Those of all
	// older states were empty too.
	drained map[event.Key]event.Change
}

// tableConfig describes one kind.
type tableConfig[T any] struct {
	kind    kinds.Kind
	cluster string
	// typ returns the OpenFGA type of an object; nil if all objects of the kind have the same.
	typ func(*T) string
	// target describes an object as a target or a parent.
	target func(*T) (iam.BindingTarget, bool)
	// matters returns the fields that decisions depend on; see [verify.NewExpectedState].
	matters func(*T) (declared, recorded any)
	indexes map[string]func(*T) []string
	// unsure reports whether the objects of a kind may be outdated; nil for tables that never are.
	unsure func(event.GroupResource) bool
}

func metadataOf[T any, P objectConstraint[T]](value *T) *metav1.ObjectMeta {
	m, _ := P(value).GetObjectMeta().(*metav1.ObjectMeta)
	return m
}

// registerTable declares a table in v. A change that may remove tuples marks the key.
func registerTable[T any, P objectConstraint[T]](v *informer.Informer, s *State, c tableConfig[T]) *table[T, P] {
	if c.target == nil {
		c.target = func(value *T) (iam.BindingTarget, bool) { return iam.TargetOfObject(metadataOf[T, P](value)) }
	}
	if c.typ == nil {
		all := iam.OpenFGAType(c.kind.Group, c.kind.Kind)
		c.typ = func(*T) string { return all }
	}
	t := &table[T, P]{cfg: c, drained: map[event.Key]event.Change{}}
	indexes := map[string]func(*T) []string{
		byObject: func(value *T) []string { return []string{t.openFGAObjectName(value)} },
		byOwner: func(value *T) (owners []string) {
			target, _ := c.target(value)
			for _, o := range target.Owners {
				owners = append(owners, ownerIndexKey(o.Type, o.Name))
			}
			return owners
		},
		byKin: func(value *T) (types []string) {
			target, _ := c.target(value)
			for _, o := range target.Owners {
				types = append(types, o.Type)
			}
			if len(types) > 0 {
				types = append(types, c.typ(value))
			}
			return slices.DeleteFunc(types, func(typ string) bool { return s.types[typ] != nil })
		},
	}
	maps.Copy(indexes, c.indexes)
	t.rows = informer.RegisterLister(v, c.kind, indexes)
	t.rows.SetEquivalence(t.isEqualForDecisions, func(k event.Key, was, is *informer.Object[T]) {
		if k.Cluster == c.cluster && (was.UID != is.UID || was.Value == nil || is.Value == nil || t.canRemoveTuples(was.Value, is.Value)) {
			s.markRevoking(k)
		}
	})
	return t
}

func ownerIndexKey(typ, name string) string { return typ + ":" + name }

func (t *table[T, P]) openFGAObjectName(value *T) string {
	m := metadataOf[T, P](value)
	return iam.OpenFGAObject(t.cfg.typ(value), m.Namespace, m.Name)
}

// liveObjectsBy returns the live objects of this cluster in an index, ordered by key.
func (t *table[T, P]) liveObjectsBy(index, value string) []informer.Object[T] {
	return slices.DeleteFunc(t.rows.ListByIndex(index, value), func(o informer.Object[T]) bool { return o.Key.Cluster != t.cfg.cluster })
}

func (t *table[T, P]) liveValuesBy(index, value string) []*T {
	var all []*T
	for _, o := range t.liveObjectsBy(index, value) {
		all = append(all, o.Value)
	}
	return all
}

// getLive returns a live object by its name, or nil.
func (t *table[T, P]) getLive(namespace, name string) *T {
	o, _ := t.rows.Get(t.keyOf(namespace, name))
	return o.Value
}

func (t *table[T, P]) keyOf(namespace, name string) event.Key {
	return event.Key{Cluster: t.cfg.cluster, GroupResource: t.cfg.kind.GroupResource, Namespace: namespace, Name: name}
}

// undrainedVersions returns the states of a name that are not drained: the live one first, then the deleted ones.
func (t *table[T, P]) undrainedVersions(k event.Key) (all []informer.Object[T]) {
	if o, ok := t.rows.Get(k); ok {
		all = append(all, o)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(all, t.rows.TombstonesSince(k, t.drained[k])...)
}

// markDrained marks a deleted state, and all older ones of its name, as drained.
func (t *table[T, P]) markDrained(k event.Key, c event.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drained[k] = c
}

// resetDrained clears drained, so that all states count again. This also drops entries of names without any state,
// which bounds the map.
func (t *table[T, P]) resetDrained() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.drained)
}

// allVersions returns all states of a name, the live one first.
func (t *table[T, P]) allVersions(k event.Key) (all []*T) {
	if o, ok := t.rows.Get(k); ok {
		all = append(all, o.Value)
	}
	for _, o := range t.rows.Tombstones(k) {
		if o.Value != nil {
			all = append(all, o.Value)
		}
	}
	return all
}

func (t *table[T, P]) toDeclaredObject(o informer.Object[T]) sourceObject {
	f := sourceObject{change: o.Change, object: t.openFGAObjectName(o.Value), meta: metadataOf[T, P](o.Value), expected: t.expectedObject(o)}
	f.target, f.alive = t.cfg.target(o.Value)
	return f
}

func (t *table[T, P]) expectedObject(o informer.Object[T]) verify.ExpectedState {
	return verify.NewExpectedState(o, t.decisionFields)
}

// decisionFields returns the fields that decisions depend on. It leaves out labels and most of the status.
func (t *table[T, P]) decisionFields(value *T) (declared, recorded any) {
	declared, recorded = t.cfg.matters(value)
	m := metadataOf[T, P](value)
	return []any{m.CreationTimestamp, m.DeletionTimestamp, m.OwnerReferences, declared}, recorded
}

func (t *table[T, P]) isEqualForDecisions(was, is *T) bool {
	declaredWas, recordedWas := t.decisionFields(was)
	declared, recorded := t.decisionFields(is)
	return equality.Semantic.DeepEqual([]any{declaredWas, recordedWas}, []any{declared, recorded})
}

// canRemoveTuples reports whether a change may remove tuples. The first value of a recorded field removes none, because nothing
// was granted without it.
func (t *table[T, P]) canRemoveTuples(was, is *T) bool {
	declaredWas, recordedWas := t.decisionFields(was)
	declared, recorded := t.decisionFields(is)
	before := reflect.ValueOf(recordedWas)
	return !equality.Semantic.DeepEqual(declaredWas, declared) ||
		before.IsValid() && !before.IsZero() && !equality.Semantic.DeepEqual(recordedWas, recorded)
}

func (t *table[T, P]) changeCount() uint64 { return t.rows.ChangeCount() }

func (t *table[T, P]) liveOrDeleted(k event.Key) (sourceObject, bool) {
	o, live := t.rows.GetOrTombstone(k)
	if o.Value == nil || k.Cluster != t.cfg.cluster {
		return sourceObject{}, false
	}
	return t.toDeclaredObject(o), live
}

// trustedObjectsOf returns the live objects behind an OpenFGA object, without kinds that may be outdated.
func (t *table[T, P]) trustedObjectsOf(object string) []informer.Object[T] {
	all := t.liveObjectsBy(byObject, object)
	if t.cfg.unsure == nil {
		return all
	}
	return slices.DeleteFunc(all, func(o informer.Object[T]) bool { return t.cfg.unsure(o.Key.GroupResource) })
}

// bindingTargetOf returns the target behind an OpenFGA object. It is not alive if none exists, or if it is being
// deleted.
func (t *table[T, P]) bindingTargetOf(object string) (target iam.BindingTarget, alive bool) {
	for _, o := range t.trustedObjectsOf(object) {
		return t.cfg.target(o.Value)
	}
	return iam.BindingTarget{}, false
}

func (t *table[T, P]) objectsOwnedBy(owner string) (all []sourceObject) {
	for _, o := range t.liveObjectsBy(byOwner, owner) {
		all = append(all, t.toDeclaredObject(o))
	}
	return all
}

func (t *table[T, P]) keysRelatedToType(typ string) (keys []event.Key) {
	for _, o := range t.liveObjectsBy(byKin, typ) {
		keys = append(keys, o.Key)
	}
	return keys
}

func (t *table[T, P]) hasObjectsOwnedBy(owner string) bool {
	return t.rows.CountByIndex(byOwner, owner) > 0
}

// liveKeys returns the keys of all live objects of this cluster.
func (t *table[T, P]) liveKeys() []event.Key {
	return slices.DeleteFunc(t.rows.Keys(), func(k event.Key) bool { return k.Cluster != t.cfg.cluster })
}
