package declared

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
)

// Names of indexes.
const (
	// byStoreID finds Stores by their OpenFGA store.
	byStoreID = "storeId"
	// byRecord finds objects by the OpenFGA store of their record.
	byRecord = "record"
	// byStoreName finds AuthorizationModels by the name of the Store they refer to.
	byStoreName = "storeRef"
	// byUnreadable finds objects whose record cannot be read.
	byUnreadable = "unreadable"
	// byOrganization finds AccountInfos by the Store of their organization.
	byOrganization = "organization"
)

// State holds the owners of tuples, from the informer.
type State struct {
	Stores *informer.Lister[corev1alpha1.Store]
	Models *informer.Lister[corev1alpha1.AuthorizationModel]
	infos  *informer.Lister[corev1alpha1.AccountInfo]
	// accountType is the type of the accounts that every user is a member of; empty for none.
	accountType string
	// iam is the Store of IAM. emptied reports whether IAM no longer needs it.
	iam     event.Key
	emptied func() bool
	packs   *tupleListCache
}

// NewState registers the tables in v; iam is the Store of IAM. With an account type, every user is a member of
// accounts.
func NewState(v *informer.Informer, iam event.Key, accountType string) *State {
	return &State{
		accountType: accountType, iam: iam, emptied: func() bool { return true }, packs: newTupleListCache(),
		Stores: informer.RegisterLister(v, kinds.Stores(), map[string]func(*corev1alpha1.Store) []string{
			byStoreID:    func(s *corev1alpha1.Store) []string { return []string{s.Status.StoreID} },
			byRecord:     func(s *corev1alpha1.Store) []string { return []string{storedRecordOfStore(s).StoreID} },
			byUnreadable: func(s *corev1alpha1.Store) []string { return unreadableIndexValues(s.Status.Conditions) },
		}),
		Models: informer.RegisterLister(v, kinds.AuthorizationModels(), map[string]func(*corev1alpha1.AuthorizationModel) []string{
			byStoreName:  func(m *corev1alpha1.AuthorizationModel) []string { return []string{m.Spec.StoreRef.Name} },
			byRecord:     func(m *corev1alpha1.AuthorizationModel) []string { return []string{storedRecordOfModel(m, "").StoreID} },
			byUnreadable: func(m *corev1alpha1.AuthorizationModel) []string { return unreadableIndexValues(m.Status.Conditions) },
		}),
		infos: informer.RegisterLister(v, kinds.AccountInfos(), map[string]func(*corev1alpha1.AccountInfo) []string{
			byOrganization: func(i *corev1alpha1.AccountInfo) []string { return []string{organizationStoreKey(i).String()} },
		}),
	}
}

// unreadableIndexValues returns the values of an object in the index byUnreadable.
func unreadableIndexValues(conditions []metav1.Condition) []string {
	if c := meta.FindStatusCondition(conditions, corev1alpha1.TuplesSynced); c != nil && c.Reason == plan.RecordUnreadable {
		return []string{plan.RecordUnreadable}
	}
	return nil
}

// UnreadableCount returns the number of objects whose status reports an unreadable record.
func (s *State) UnreadableCount() int {
	return s.Stores.CountByIndex(byUnreadable, plan.RecordUnreadable) + s.Models.CountByIndex(byUnreadable, plan.RecordUnreadable)
}

// SetIAMStoreEmptied sets the condition that the deletion of the Store of IAM waits for.
func (s *State) SetIAMStoreEmptied(emptied func() bool) { s.emptied = emptied }

// planSnapshot holds the input of a plan, and its objects by UID.
type planSnapshot struct {
	input   plan.Input
	objects map[string]*ownerObject
	// store is the Store of the OpenFGA store, or nil.
	store *ownerObject
	// begun is the time of the snapshot, by the configured clock. wait bounds how long another replica may still write
	// a recorded tuple.
	begun, wait time.Duration
	// life identifies the store with its model.
	life string
}

// organizationStoreKey returns the key of the Store of a kcp workspace's organization.
func organizationStoreKey(i *corev1alpha1.AccountInfo) event.Key {
	org := i.Spec.Organization
	return event.Key{Cluster: org.OriginCluster, GroupResource: kinds.Stores().GroupResource, Name: org.Name}
}

// modelsOfStore returns the live AuthorizationModels that refer to a Store.
func (s *State) modelsOfStore(store event.Key) []informer.Object[corev1alpha1.AuthorizationModel] {
	var found []informer.Object[corev1alpha1.AuthorizationModel]
	for _, m := range s.Models.ListByIndex(byStoreName, store.Name) {
		if m.Value.Spec.StoreRef.Key(m.Key.Cluster) == store {
			found = append(found, m)
		}
	}
	return found
}

func (s *State) storeOwnerObject(o informer.Object[corev1alpha1.Store]) ownerObject {
	out := newStoreObject(s.packs, o)
	out.Reserved = o.Key == s.iam
	out.HasDependents = out.Deleting && (len(s.modelsOfStore(o.Key)) > 0 || out.Reserved && !s.emptied())
	if s.accountType == "" {
		return out
	}
	var infos []*corev1alpha1.AccountInfo
	for _, i := range s.infos.ListByIndex(byOrganization, o.Key.String()) {
		if organizationStoreKey(i.Value) == o.Key && i.Key.Name == corev1alpha1.AccountInfoName {
			infos, out.infos = append(infos, i.Value), append(out.infos, i.Key)
		}
	}
	out.Declared = plan.WithAccountMembers(out.Declared, plan.AccountsOfStore(s.accountType, o.Key.Cluster, o.Value, infos)...)
	return out
}

func (s *State) modelOwnerObject(o informer.Object[corev1alpha1.AuthorizationModel]) ownerObject {
	store, target := o.Value.Spec.StoreRef.Key(o.Key.Cluster), ""
	of, ok := s.Stores.Get(store)
	if ok {
		target = of.Value.Status.StoreID
	}
	out := newModelObject(s.packs, o, of.Value, target)
	out.StoreMissing, out.Reserved = !ok, store == s.iam
	for _, other := range s.Stores.ListByIndex(byStoreID, out.Record.StoreID) {
		out.RecordedElsewhere = out.RecordedElsewhere || other.Key != store
	}
	return out
}

// findObject returns a live object of either kind.
func (s *State) findObject(key event.Key) (ownerObject, bool) {
	if o, ok := s.Stores.Get(key); ok {
		return s.storeOwnerObject(o), true
	}
	if o, ok := s.Models.Get(key); ok {
		return s.modelOwnerObject(o), true
	}
	return ownerObject{}, false
}

// liveObjectsOfKey returns the live objects of a key.
func (s *State) liveObjectsOfKey(key Key) []ownerObject {
	if key.StoreID != "" {
		return s.liveObjectsOf(key.StoreID)
	}
	if o, ok := s.findObject(key.Owner); ok {
		return []ownerObject{o}
	}
	return nil
}

// liveObjectsOf returns the live objects that belong to an OpenFGA store or have a record of it, each once.
func (s *State) liveObjectsOf(storeID string) []ownerObject {
	stores, models := map[event.Key]informer.Object[corev1alpha1.Store]{}, map[event.Key]informer.Object[corev1alpha1.AuthorizationModel]{}
	for _, o := range s.Stores.ListByIndex(byStoreID, storeID) {
		stores[o.Key] = o
		for _, m := range s.modelsOfStore(o.Key) {
			models[m.Key] = m
		}
	}
	for _, o := range s.Stores.ListByIndex(byRecord, storeID) {
		stores[o.Key] = o
	}
	for _, m := range s.Models.ListByIndex(byRecord, storeID) {
		models[m.Key] = m
	}
	objects := make([]ownerObject, 0, len(stores)+len(models))
	for _, o := range stores {
		objects = append(objects, s.storeOwnerObject(o))
	}
	for _, m := range models {
		objects = append(objects, s.modelOwnerObject(m))
	}
	return objects
}

// deletedObjectsOf returns the objects that were deleted with a record of a store.
func (s *State) deletedObjectsOf(storeID string) []ownerObject {
	var objects []ownerObject
	add := func(last event.Change, from statusRecord, conditions []metav1.Condition) {
		r, _ := from.decodeRecord(s.packs) // An unreadable record gives nothing to remove.
		gone := newDeletedObject
		if s.isLiveWithUID(last.Key, last.UID) {
			gone = newObjectBeforeRewind
		}
		objects = append(objects, gone(last, r, findPlanCondition(conditions, corev1alpha1.TuplesSynced)))
	}
	for _, o := range s.Stores.TombstonesByIndex(byRecord, storeID) {
		add(o.Change, storedRecordOfStore(o.Value), o.Value.Status.Conditions)
	}
	for _, m := range s.Models.TombstonesByIndex(byRecord, storeID) {
		add(m.Change, storedRecordOfModel(m.Value, ""), m.Value.Status.Conditions)
	}
	return objects
}

func (s *State) isLiveWithUID(key event.Key, uid string) bool {
	o, live := s.findObject(key)
	return live && o.UID == uid
}

// isRecordSuperseded reports whether an object exists, or was deleted with an empty record. Then no kept record is
// needed.
func (s *State) isRecordSuperseded(key event.Key, uid string) bool {
	if s.isLiveWithUID(key, uid) {
		return true
	}
	for _, o := range s.Stores.Tombstones(key) {
		if o.UID == uid {
			return o.Value != nil && storedRecordOfStore(o.Value).isEmpty()
		}
	}
	for _, m := range s.Models.Tombstones(key) {
		if m.UID == uid {
			return m.Value != nil && storedRecordOfModel(m.Value, "").isEmpty()
		}
	}
	return false
}

// OwnersOfStore returns all objects that declare tuples for a Store.
func (s *State) OwnersOfStore(store informer.Object[corev1alpha1.Store]) []plan.Owner {
	var objects []ownerObject
	if id := store.Value.Status.StoreID; id != "" {
		objects = s.liveObjectsOf(id)
	} else {
		objects = []ownerObject{s.storeOwnerObject(store)}
		for _, m := range s.modelsOfStore(store.Key) {
			objects = append(objects, s.modelOwnerObject(m))
		}
	}
	owners := make([]plan.Owner, len(objects))
	for i, o := range objects {
		owners[i] = o.Owner
	}
	return owners
}
