package tuplesync

import (
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/tuple-sync/plan"
)

// Names of indexes.
const (
	// byStoreID finds Stores by the OpenFGA store that is theirs.
	byStoreID = "storeId"
	// byRecord finds objects by the OpenFGA store that their record speaks of.
	byRecord = "record"
	// byStoreName finds AuthorizationModels by the name of the Store they refer to.
	byStoreName = "storeRef"
	// byOrganization finds AccountInfos by the Store of their organization.
	byOrganization = "organization"
)

// scene answers who wants tuples where, from the view.
type scene struct {
	stores *view.Table[corev1alpha1.Store]
	models *view.Table[corev1alpha1.AuthorizationModel]
	infos  *view.Table[corev1alpha1.AccountInfo]
	memory *memory
	// accountType is the type of the accounts that everybody is a member of; empty if nobody is.
	accountType string
}

func newScene(v *view.View) *scene {
	return &scene{
		stores: view.Register(v, kinds.Stores(), map[string]func(*corev1alpha1.Store) []string{
			byStoreID: func(s *corev1alpha1.Store) []string { return nonEmpty(s.Status.StoreID) },
			byRecord: func(s *corev1alpha1.Store) []string {
				return nonEmpty(record(s.Status.ManagedTuplesStoreID, s.Status.ManagedTuples, s.Status.StoreID).StoreID)
			},
		}),
		models: view.Register(v, kinds.AuthorizationModels(), map[string]func(*corev1alpha1.AuthorizationModel) []string{
			byStoreName: func(m *corev1alpha1.AuthorizationModel) []string { return nonEmpty(m.Spec.StoreRef.Name) },
			byRecord: func(m *corev1alpha1.AuthorizationModel) []string {
				return nonEmpty(record(m.Status.StoreID, m.Status.ManagedTuples, "").StoreID)
			},
		}),
		infos: view.Register(v, kinds.AccountInfos(), map[string]func(*corev1alpha1.AccountInfo) []string{
			byOrganization: func(i *corev1alpha1.AccountInfo) []string { return []string{organization(i).String()} },
		}),
		memory: newMemory(),
	}
}

// organization names the Store of the organization that a kcp workspace belongs to.
func organization(i *corev1alpha1.AccountInfo) event.Key {
	org := i.Spec.Organization
	return event.Key{Cluster: org.OriginCluster, GroupResource: kinds.Stores().GroupResource, Name: org.Name}
}

func nonEmpty(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// storeKey names the Store that an AuthorizationModel refers to.
func storeKey(m view.Object[corev1alpha1.AuthorizationModel]) event.Key {
	key := event.Key{Cluster: m.Key.Cluster, GroupResource: kinds.Stores().GroupResource, Name: m.Value.Spec.StoreRef.Name}
	if cluster := m.Value.Spec.StoreRef.Cluster; cluster != "" {
		key.Cluster = cluster
	}
	return key
}

// dependents lists the live AuthorizationModels that refer to a Store.
func (s *scene) dependents(store event.Key) []view.Object[corev1alpha1.AuthorizationModel] {
	var found []view.Object[corev1alpha1.AuthorizationModel]
	for _, m := range s.models.By(byStoreName, store.Name) {
		if storeKey(m) == store {
			found = append(found, m)
		}
	}
	return found
}

func (s *scene) store(o view.Object[corev1alpha1.Store]) object {
	out := storeObject(o)
	out.Needed = out.Deleting && len(s.dependents(o.Key)) > 0
	if s.accountType != "" {
		out.Declared = plan.WithMembers(out.Declared, plan.AccountsOf(s.accountType, o.Key.Cluster, o.Value, s.infosOf(o.Key))...)
	}
	return out
}

func (s *scene) infosOf(store event.Key) []*corev1alpha1.AccountInfo {
	var found []*corev1alpha1.AccountInfo
	for _, i := range s.infos.By(byOrganization, store.String()) {
		if organization(i.Value) == store && i.Key.Name == corev1alpha1.AccountInfoName {
			found = append(found, i.Value)
		}
	}
	return found
}

func (s *scene) model(o view.Object[corev1alpha1.AuthorizationModel]) object {
	home, ok := s.stores.Get(storeKey(o))
	var out object
	if ok {
		out = modelObject(o, home.Value.Status.StoreID)
	} else {
		out = modelObject(o, "")
	}
	out.Stray = !ok
	for _, other := range s.stores.By(byStoreID, out.Record.StoreID) {
		out.Claimed = out.Claimed || !ok || other.Key != home.Key
	}
	return out
}

// lookUp finds a live object of either kind.
func (s *scene) lookUp(key event.Key) (object, bool) {
	if o, ok := s.stores.Get(key); ok {
		return s.store(o), true
	}
	if o, ok := s.models.Get(key); ok {
		return s.model(o), true
	}
	return object{}, false
}

// owners lists who has to do with an OpenFGA store: live objects, and the records of
// objects that were deleted past us.
func (s *scene) owners(storeID string) []object {
	found := map[event.Key]object{}
	for _, o := range s.stores.By(byStoreID, storeID) {
		found[o.Key] = s.store(o)
		for _, m := range s.dependents(o.Key) {
			found[m.Key] = s.model(m)
		}
	}
	for _, o := range s.stores.By(byRecord, storeID) {
		found[o.Key] = s.store(o)
	}
	for _, m := range s.models.By(byRecord, storeID) {
		found[m.Key] = s.model(m)
	}
	objects := make([]object, 0, len(found))
	ledgers := s.memory.of(storeID)
	for _, o := range found {
		delete(ledgers, o.UID)
		objects = append(objects, o)
	}
	for uid, l := range ledgers {
		key := l.change.Key
		if s.alive(key, uid) || s.cleared(key, uid) {
			s.memory.forget(storeID, uid)
			continue
		}
		objects = append(objects, object{change: l.change, Owner: plan.Owner{
			Key: key, UID: uid, Gone: true, Record: plan.Record{StoreID: storeID, Tuples: l.tuples},
		}})
	}
	return objects
}

// alive means that the object itself is there, with its record elsewhere or empty.
func (s *scene) alive(key event.Key, uid string) bool {
	o, ok := s.lookUp(key)
	return ok && o.UID == uid
}

// cleared means that the object was deleted in good order.
func (s *scene) cleared(key event.Key, uid string) bool {
	gone, r, ok := s.buried(key)
	return ok && gone.UID == uid && len(r.Tuples) == 0
}

// buried finds a deleted object and its last record.
func (s *scene) buried(key event.Key) (event.Change, plan.Record, bool) {
	if o, ok := s.stores.Tombstone(key); ok && o.Value != nil {
		return o.Change, storeObject(o).Record, true
	}
	if o, ok := s.models.Tombstone(key); ok && o.Value != nil {
		return o.Change, modelObject(o, "").Record, true
	}
	return event.Change{}, plan.Record{}, false
}
