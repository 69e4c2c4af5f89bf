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

// State holds the owners of tuples, from the view.
type State struct {
	Stores *informer.Lister[corev1alpha1.Store]
	Models *informer.Lister[corev1alpha1.AuthorizationModel]
	infos  *informer.Lister[corev1alpha1.AccountInfo]
	// accountType is the type of the accounts that every user is a member of; empty for none.
	accountType string
	// iam is the Store of IAM. emptied reports whether IAM no longer needs it.
	iam     event.Key
	emptied func() bool
	packs   *packedCache
}

// NewState registers the tables in v; iam is the Store of IAM. With an account type, every user is a member of
// accounts.
func NewState(v *informer.Informer, iam event.Key, accountType string) *State {
	return &State{
		accountType: accountType, iam: iam, emptied: func() bool { return true }, packs: newPacks(),
		Stores: informer.Register(v, kinds.Stores(), map[string]func(*corev1alpha1.Store) []string{
			byStoreID:    func(s *corev1alpha1.Store) []string { return []string{s.Status.StoreID} },
			byRecord:     func(s *corev1alpha1.Store) []string { return []string{recordedOfStore(s).StoreID} },
			byUnreadable: func(s *corev1alpha1.Store) []string { return unreadableIndex(s.Status.Conditions) },
		}),
		Models: informer.Register(v, kinds.AuthorizationModels(), map[string]func(*corev1alpha1.AuthorizationModel) []string{
			byStoreName:  func(m *corev1alpha1.AuthorizationModel) []string { return []string{m.Spec.StoreRef.Name} },
			byRecord:     func(m *corev1alpha1.AuthorizationModel) []string { return []string{recordedOfModel(m, "").StoreID} },
			byUnreadable: func(m *corev1alpha1.AuthorizationModel) []string { return unreadableIndex(m.Status.Conditions) },
		}),
		infos: informer.Register(v, kinds.AccountInfos(), map[string]func(*corev1alpha1.AccountInfo) []string{
			byOrganization: func(i *corev1alpha1.AccountInfo) []string { return []string{organizationKey(i).String()} },
		}),
	}
}

// unreadableIndex returns the values of an object in the index byUnreadable.
func unreadableIndex(conditions []metav1.Condition) []string {
	if c := meta.FindStatusCondition(conditions, corev1alpha1.TuplesSynced); c != nil && c.Reason == plan.RecordUnreadable {
		return []string{plan.RecordUnreadable}
	}
	return nil
}

// Unreadable returns the number of objects whose status reports an unreadable record.
func (s *State) Unreadable() int {
	return s.Stores.Count(byUnreadable, plan.RecordUnreadable) + s.Models.Count(byUnreadable, plan.RecordUnreadable)
}

// KeepUntil sets the condition that the deletion of the Store of IAM waits for.
func (s *State) KeepUntil(emptied func() bool) { s.emptied = emptied }

// snapshot holds the input of a plan, and its objects by UID.
type snapshot struct {
	input   plan.Input
	objects map[string]*object
	// store is the Store of the OpenFGA store, or nil.
	store *object
	// begun is the time of the snapshot, by the configured clock. wait bounds how long another replica may still write
	// a recorded tuple.
	begun, wait time.Duration
	// life identifies the store with its model.
	life string
}

// organizationKey returns the key of the Store of a kcp workspace's organization.
func organizationKey(i *corev1alpha1.AccountInfo) event.Key {
	org := i.Spec.Organization
	return event.Key{Cluster: org.OriginCluster, GroupResource: kinds.Stores().GroupResource, Name: org.Name}
}

// dependentModules returns the live AuthorizationModels that refer to a Store.
func (s *State) dependentModules(store event.Key) []informer.Object[corev1alpha1.AuthorizationModel] {
	var found []informer.Object[corev1alpha1.AuthorizationModel]
	for _, m := range s.Models.By(byStoreName, store.Name) {
		if m.Value.Spec.StoreRef.Key(m.Key.Cluster) == store {
			found = append(found, m)
		}
	}
	return found
}

func (s *State) storeObject(o informer.Object[corev1alpha1.Store]) object {
	out := storeObject(s.packs, o)
	out.Reserved = o.Key == s.iam
	out.HasDependents = out.Deleting && (len(s.dependentModules(o.Key)) > 0 || out.Reserved && !s.emptied())
	if s.accountType == "" {
		return out
	}
	var infos []*corev1alpha1.AccountInfo
	for _, i := range s.infos.By(byOrganization, o.Key.String()) {
		if organizationKey(i.Value) == o.Key && i.Key.Name == corev1alpha1.AccountInfoName {
			infos, out.infos = append(infos, i.Value), append(out.infos, i.Key)
		}
	}
	out.Declared = plan.WithMembers(out.Declared, plan.AccountsOf(s.accountType, o.Key.Cluster, o.Value, infos)...)
	return out
}

func (s *State) moduleObject(o informer.Object[corev1alpha1.AuthorizationModel]) object {
	store, target := o.Value.Spec.StoreRef.Key(o.Key.Cluster), ""
	of, ok := s.Stores.Get(store)
	if ok {
		target = of.Value.Status.StoreID
	}
	out := modelObject(s.packs, o, of.Value, target)
	out.StoreMissing, out.Reserved = !ok, store == s.iam
	for _, other := range s.Stores.By(byStoreID, out.Record.StoreID) {
		out.RecordedElsewhere = out.RecordedElsewhere || other.Key != store
	}
	return out
}

// lookUp returns a live object of either kind.
func (s *State) lookUp(key event.Key) (object, bool) {
	if o, ok := s.Stores.Get(key); ok {
		return s.storeObject(o), true
	}
	if o, ok := s.Models.Get(key); ok {
		return s.moduleObject(o), true
	}
	return object{}, false
}

// objectsUnder returns the live objects of a key.
func (s *State) objectsUnder(key Key) []object {
	if key.StoreID != "" {
		return s.ownersOf(key.StoreID)
	}
	if o, ok := s.lookUp(key.Owner); ok {
		return []object{o}
	}
	return nil
}

// ownersOf returns the live objects that belong to an OpenFGA store or have a record of it, each once.
func (s *State) ownersOf(storeID string) []object {
	stores, models := map[event.Key]informer.Object[corev1alpha1.Store]{}, map[event.Key]informer.Object[corev1alpha1.AuthorizationModel]{}
	for _, o := range s.Stores.By(byStoreID, storeID) {
		stores[o.Key] = o
		for _, m := range s.dependentModules(o.Key) {
			models[m.Key] = m
		}
	}
	for _, o := range s.Stores.By(byRecord, storeID) {
		stores[o.Key] = o
	}
	for _, m := range s.Models.By(byRecord, storeID) {
		models[m.Key] = m
	}
	objects := make([]object, 0, len(stores)+len(models))
	for _, o := range stores {
		objects = append(objects, s.storeObject(o))
	}
	for _, m := range models {
		objects = append(objects, s.moduleObject(m))
	}
	return objects
}

// deletedObjects returns the objects that were deleted with a record of a store.
func (s *State) deletedObjects(storeID string) []object {
	var objects []object
	add := func(last event.Change, from recorded, conditions []metav1.Condition) {
		r, _ := from.decodeRecord(s.packs) // An unreadable record gives nothing to remove.
		gone := deletedObject
		if s.hasLive(last.Key, last.UID) {
			gone = formerObject
		}
		objects = append(objects, gone(last, r, ownCondition(conditions, corev1alpha1.TuplesSynced)))
	}
	for _, o := range s.Stores.GoneBy(byRecord, storeID) {
		add(o.Change, recordedOfStore(o.Value), o.Value.Status.Conditions)
	}
	for _, m := range s.Models.GoneBy(byRecord, storeID) {
		add(m.Change, recordedOfModel(m.Value, ""), m.Value.Status.Conditions)
	}
	return objects
}

func (s *State) hasLive(key event.Key, uid string) bool {
	o, live := s.lookUp(key)
	return live && o.UID == uid
}

// hasOwnRecord reports whether an object exists, or was deleted with an empty record. Then no kept record is
// needed.
func (s *State) hasOwnRecord(key event.Key, uid string) bool {
	if s.hasLive(key, uid) {
		return true
	}
	for _, o := range s.Stores.Gone(key) {
		if o.UID == uid {
			return o.Value != nil && recordedOfStore(o.Value).isEmpty()
		}
	}
	for _, m := range s.Models.Gone(key) {
		if m.UID == uid {
			return m.Value != nil && recordedOfModel(m.Value, "").isEmpty()
		}
	}
	return false
}

// Owners returns all objects that declare tuples for a Store.
func (s *State) Owners(store informer.Object[corev1alpha1.Store]) []plan.Owner {
	var objects []object
	if id := store.Value.Status.StoreID; id != "" {
		objects = s.ownersOf(id)
	} else {
		objects = []object{s.storeObject(store)}
		for _, m := range s.dependentModules(store.Key) {
			objects = append(objects, s.moduleObject(m))
		}
	}
	owners := make([]plan.Owner, len(objects))
	for i, o := range objects {
		owners[i] = o.Owner
	}
	return owners
}
