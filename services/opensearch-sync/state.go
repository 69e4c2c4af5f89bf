package opensearchsync

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

const (
	// byCluster indexes objects by namespace and name of their cluster.
	byCluster = "cluster"
	// byUID indexes objects by the UID of the cluster in their record, and clusters by their own UID.
	byUID = "uid"
	// bySecret indexes users and clusters by the Secrets that they name.
	bySecret = "secret"
)

// state holds all objects on which opensearch-sync bases its decisions.
type state struct {
	// clusters holds one table for each group. The first one that has a name decides.
	clusters []clusterTable
	tables   map[plan.EntityKind]groupTables
	kinds    map[event.GroupResource]plan.EntityKind
	// secrets holds the Secrets that the watcher follows.
	secrets *informer.Lister[struct{}]

	mu sync.Mutex
	// cleared holds the reduced records of gone objects.
	cleared perObjectCache[remains]
}

// remains is the record of a gone object after a removal. epoch is the epoch of its deletion.
type remains struct {
	epoch string
	left  []opensearchv1.Provisioned
}

// clusterTable holds the clusters of one group.
type clusterTable struct {
	group event.GroupResource
	rows  *informer.Lister[opensearchv1.OpenSearchCluster]
}

// declaredObject is an object that declares an entity or entries, as the informer holds it.
type declaredObject struct {
	event.Change
	kind kinds.Kind
	// value has the record that counts in its status. written is the object as the API server holds it, or nil if they
	// are the same.
	value, written opensearchv1.DeclaredObject
	// obstacle is the reason why nothing can be written for the object.
	obstacle *plan.Verdict
}

// isDeleted reports whether an object was deleted before its entity was removed, for example because a user removed its
// finalizer.
func (o declaredObject) isDeleted() bool { return o.Deleted }

// isDeleting reports whether an object is deleted or being deleted, so that nothing of it must remain.
func (o declaredObject) isDeleting() bool {
	return o.isDeleted() || o.value.GetDeletionTimestamp() != nil
}

// mayBeAboutServer reports whether the status of an object can be about a server. A status without a server can be about any.
func (o declaredObject) mayBeAboutServer(server string) bool {
	of := o.value.CommonStatus().ManagedServer
	return of == "" || of == server
}

// hadEntityBefore returns whether the server had the entity before the object. It returns nil if that was never checked.
func (o declaredObject) hadEntityBefore(server string) *bool {
	if !o.mayBeAboutServer(server) {
		return nil
	}
	return o.value.ExistedBefore()
}

// isOnServerOf reports whether an object was made on the server of a run, or on none yet. The server counts, not the
// OpenSearchCluster: a server may be declared again, and an OpenSearchCluster may change its server.
func (o declaredObject) isOnServerOf(w syncInput) bool {
	s := o.value.CommonStatus()
	if s.ManagedServer == "" {
		return s.ManagedCluster == "" || s.ManagedCluster == string(w.cluster.UID)
	}
	return s.ManagedServer == w.server
}

// statusFields returns the fields of the status as the API server holds it.
func (o declaredObject) statusFields() statusFields {
	if o.written == nil {
		return statusFieldsOf(o.value)
	}
	return statusFieldsOf(o.written)
}

// hasLostRecord reports whether an object was in step and has lost its record. Users cannot be lost, because an attribute in
// OpenSearch names their object.
func (o declaredObject) hasLostRecord() bool {
	s := o.value.CommonStatus()
	if s.ManagedServer != "" || s.State != opensearchv1.Created && !strings.HasPrefix(s.Reason, recordMissing) {
		return false
	}
	switch value := o.value.(type) {
	case *opensearchv1.OpensearchUser:
		return false
	case *opensearchv1.OpensearchUserRoleBinding:
		return len(recordedEntries(value.Status)) == 0
	default:
		return value.ExistedBefore() == nil
	}
}

// hasRecord reports whether OpenSearch may hold something of an object, by its record.
func (o declaredObject) hasRecord() bool {
	switch value := o.value.(type) {
	case *opensearchv1.OpensearchUser: // The user in OpenSearch names its object.
		return o.isDeleted() || value.Status.ManagedCluster != ""
	case *opensearchv1.OpensearchUserRoleBinding:
		return len(recordedEntries(value.Status)) > 0
	default:
		existing := value.ExistedBefore()
		return existing != nil && !*existing
	}
}

// objectTable is a table of objects of one kind and group.
type objectTable interface {
	// objectsOfCluster returns the objects that name a cluster, or that are in it by their record.
	objectsOfCluster(cluster event.Key, uid string) []declaredObject
	// deletedObjectsOf returns the deleted objects that named a cluster.
	deletedObjectsOf(cluster event.Key) []declaredObject
	// expectedObject returns the state that the API server must hold under the name of an object. If o is gone and its name is
	// taken again, that is the state of the newer object.
	expectedObject(o declaredObject) verify.ExpectedState
	// parseManifest decodes a manifest and rejects unknown fields. liveObject returns the object of a name.
	parseManifest(manifest []byte) (opensearchv1.DeclaredObject, error)
	liveObject(k event.Key) (declaredObject, bool)
	// kubernetesKind returns the kind in Kubernetes.
	kubernetesKind() kinds.Kind
	// clusterOf returns the cluster that the newest known state of an object names, and the cluster UID in its record.
	clusterOf(k event.Key) (clusterOf event.Key, managed string, ok bool)
	// clustersUsingSecret returns the clusters of objects that name a Secret.
	clustersUsingSecret(secret event.Key) []event.Key
	// hasObjectWithUID reports whether an object of this name and UID is live, or, if gone is true, has a tombstone.
	hasObjectWithUID(k event.Key, uid string, gone bool) bool
	// hasObjectsOnCluster reports whether the record of any object names the cluster with a UID.
	hasObjectsOnCluster(uid string) bool
}

// newState registers the tables in v. It uses those of the legacy group only if legacy is true.
func newState(v *informer.Informer, legacy bool) *state {
	s := &state{tables: map[plan.EntityKind]groupTables{}, kinds: map[event.GroupResource]plan.EntityKind{}}
	s.cleared = newPerObjectCache[remains](func(k event.Key, uid string) bool { return s.tableFor(k).hasObjectWithUID(k, uid, true) })
	s.secrets = informer.RegisterLister[struct{}](v, kinds.Secrets(), nil)
	index := map[string]func(*opensearchv1.OpenSearchCluster) []string{
		byUID:    func(c *opensearchv1.OpenSearchCluster) []string { return []string{string(c.UID)} },
		bySecret: secretPathsOf[*opensearchv1.OpenSearchCluster],
	}
	for _, kind := range withLegacyGroup(kinds.OpenSearchClusters()) {
		if rows := informer.RegisterLister(v, kind, index); legacy || !kind.Optional {
			s.clusters = append(s.clusters, clusterTable{kind.GroupResource, rows})
		}
	}
	registerTables[opensearchv1.OpensearchUser](s, v, kinds.OpenSearchUsers(), plan.Users, legacy)
	registerTables[opensearchv1.OpensearchRole](s, v, kinds.OpenSearchRoles(), plan.Roles, legacy)
	registerTables[opensearchv1.OpensearchUserRoleBinding](s, v, kinds.OpenSearchBindings(), plan.Mappings, legacy)
	registerTables[opensearchv1.OpensearchTenant](s, v, kinds.OpenSearchTenants(), plan.Tenants, legacy)
	registerTables[opensearchv1.OpensearchActionGroup](s, v, kinds.OpenSearchActionGroups(), plan.ActionGroups, legacy)
	return s
}

// withLegacyGroup returns a kind in its present and its legacy group.
func withLegacyGroup(kind kinds.Kind) []kinds.Kind {
	return []kinds.Kind{kind, kinds.ToLegacyOpenSearchKind(kind)}
}

// declaredPointer is the constraint for a pointer to T that is a declared object.
type declaredPointer[T any] interface {
	*T
	opensearchv1.DeclaredObject
	runtime.Object
}

type kindTable[T any, P declaredPointer[T]] struct {
	kind kinds.Kind
	rows *informer.Lister[T]
}

func registerTables[T any, P declaredPointer[T]](s *state, v *informer.Informer, kind kinds.Kind, of plan.EntityKind, legacy bool) {
	index := map[string]func(*T) []string{
		byCluster: func(value *T) []string { return []string{clusterPath(P(value))} },
		byUID:     func(value *T) []string { return []string{P(value).CommonStatus().ManagedCluster} },
		bySecret:  func(value *T) []string { return secretPathsOf(P(value)) },
	}
	for _, kind := range withLegacyGroup(kind) {
		if rows := informer.RegisterLister(v, kind, index); legacy || !kind.Optional {
			s.tables[of] = append(s.tables[of], kindTable[T, P]{kind, rows})
			s.kinds[kind.GroupResource] = of
		}
	}
}

func clusterPath(o opensearchv1.DeclaredObject) string { return o.GetNamespace() + "/" + o.Cluster() }

func (t kindTable[T, P]) objectsOfCluster(cluster event.Key, uid string) []declaredObject {
	rows := t.rows.ListByIndex(byCluster, cluster.NamespacedName())
	if uid != "" {
		rows = append(slices.Clone(rows), t.rows.ListByIndex(byUID, uid)...)
	}
	return t.toObjects(cluster, rows)
}

func (t kindTable[T, P]) deletedObjectsOf(cluster event.Key) []declaredObject {
	rows := slices.DeleteFunc(slices.Clone(t.rows.TombstonesByIndex(byCluster, cluster.NamespacedName())), func(o informer.Object[T]) bool {
		is, live := t.rows.Get(o.Key)
		return live && is.UID == o.UID || o.Value == nil
	})
	for i := range rows {
		rows[i].Deleted = true
	}
	return t.toObjects(cluster, rows)
}

// toObjects returns the rows in the namespace of a cluster, each once.
func (t kindTable[T, P]) toObjects(cluster event.Key, rows []informer.Object[T]) (all []declaredObject) {
	seen := map[string]bool{}
	for _, o := range rows {
		if o.Key.Cluster == cluster.Cluster && o.Key.Namespace == cluster.Namespace && !seen[o.UID] {
			seen[o.UID] = true
			all = append(all, declaredObject{Change: o.Change, kind: t.kind, value: withEffectiveRecord(P(o.Value)), written: P(o.Value)})
		}
	}
	return all
}

func (t kindTable[T, P]) expectedObject(o declaredObject) verify.ExpectedState {
	if newer, taken := t.liveObject(o.Key); taken && o.isDeleted() {
		o = newer
	}
	value, _ := o.value.(P)
	return verify.NewExpectedState(informer.Object[T]{Change: o.Change, Value: (*T)(value)}, func(value *T) (declared, recorded any) {
		return decisionFields(P(value)), nil
	})
}

func (t kindTable[T, P]) parseManifest(manifest []byte) (opensearchv1.DeclaredObject, error) {
	value := P(new(T))
	decoder := json.NewDecoder(bytes.NewReader(manifest))
	decoder.DisallowUnknownFields()
	return value, decoder.Decode(value)
}

func (t kindTable[T, P]) liveObject(k event.Key) (declaredObject, bool) {
	o, ok := t.rows.Get(k)
	found := declaredObject{Change: o.Change, kind: t.kind, value: P(o.Value), written: P(o.Value)}
	if ok {
		found.value = withEffectiveRecord(found.value)
	}
	return found, ok
}

func (t kindTable[T, P]) kubernetesKind() kinds.Kind { return t.kind }

func (t kindTable[T, P]) hasObjectWithUID(k event.Key, uid string, gone bool) bool {
	if !gone {
		o, live := t.rows.Get(k)
		return live && o.UID == uid
	}
	return slices.ContainsFunc(t.rows.Tombstones(k), func(o informer.Object[T]) bool { return o.UID == uid })
}

func (t kindTable[T, P]) hasObjectsOnCluster(uid string) bool {
	return t.rows.CountByIndex(byUID, uid) > 0
}

// decisionFields returns the parts of an object on which decisions depend.
func decisionFields(o opensearchv1.DeclaredObject) any {
	kept, _ := readRecordCopy(o)
	o = withEffectiveRecord(o)
	all := []any{
		kept.Connection, o.GetAnnotations()[opensearchv1.ForgetAnnotation],
		o.Cluster(), o.OpenSearchName(), plan.DeclaredBody(o), o.ExistedBefore(), o.CommonStatus().ManagedCluster,
		o.CommonStatus().ManagedServer, o.GetDeletionTimestamp() != nil, o.GetAnnotations()[opensearchv1.AdoptAnnotation],
		o.GetAnnotations()[opensearchv1.SourceUIDAnnotation], o.GetAnnotations()[opensearchv1.BindAnnotation],
	}
	switch o := o.(type) {
	case *opensearchv1.OpensearchUser:
		return append(all, o.Spec.PasswordFrom)
	case *opensearchv1.OpensearchUserRoleBinding:
		return append(all, o.Spec, recordedEntries(o.Status))
	}
	return all
}

// expectedClusterState returns the expected state of a cluster: the fields on which its connection depends.
func expectedClusterState(o informer.Object[opensearchv1.OpenSearchCluster]) verify.ExpectedState {
	return verify.NewExpectedState(o, func(c *opensearchv1.OpenSearchCluster) (declared, recorded any) {
		return []any{c.Spec, c.Status.Phase, c.Annotations[opensearchv1.ConnectionAnnotation], c.DeletionTimestamp != nil}, nil
	})
}

func (t kindTable[T, P]) clusterOf(k event.Key) (cluster event.Key, managed string, ok bool) {
	o, _ := t.rows.GetOrTombstone(k)
	if o.Value == nil {
		return event.Key{}, "", false
	}
	return clusterKey(k.Cluster, k.Namespace, P(o.Value).Cluster()), P(o.Value).CommonStatus().ManagedCluster, true
}

// clusterKey returns the key of a cluster, whatever group declares it. Both groups share one document of each kind.
func clusterKey(cluster, namespace, name string) event.Key {
	return event.Key{Cluster: cluster, GroupResource: kinds.OpenSearchClusters().GroupResource, Namespace: namespace, Name: name}
}

// affectedKeys returns the keys that a change of an object affects.
func (s *state) affectedKeys(k event.Key) []Key {
	switch k.Resource {
	case kinds.OpenSearchClusters().Resource:
		return keysOfCluster(clusterKey(k.Cluster, k.Namespace, k.Name))
	case kinds.Secrets().Resource:
		return s.keysUsingSecret(k)
	}
	kind, ok := s.kinds[k.GroupResource]
	if !ok {
		return nil
	}
	cluster, managed, ok := s.tableFor(k).clusterOf(k)
	if !ok || cluster.Name == "" {
		return nil
	}
	all := []Key{{cluster, kind}}
	for _, c := range s.clustersWithUID(managed) {
		if is := clusterKey(c.Key.Cluster, c.Key.Namespace, c.Key.Name); is != cluster {
			all = append(all, Key{is, kind})
		}
	}
	return all
}

// tableFor returns the table of an object.
func (s *state) tableFor(k event.Key) objectTable {
	return s.tables[s.kinds[k.GroupResource]].tableOfGroup(k.GroupResource)
}

// keysOfCluster returns all keys of a cluster.
func keysOfCluster(cluster event.Key) (all []Key) {
	for _, kind := range plan.AllKinds() {
		all = append(all, Key{cluster, kind})
	}
	return all
}

// liveCluster returns the live cluster of a name, from the first group that has one.
func (s *state) liveCluster(k event.Key) (found informer.Object[opensearchv1.OpenSearchCluster], live bool) {
	for _, c := range s.clusters {
		k.GroupResource = c.group
		if found, live = c.rows.Get(k); live {
			break
		}
	}
	return found, live
}

// clustersWithUID returns the live clusters with a UID, at most one.
func (s *state) clustersWithUID(uid string) (all []informer.Object[opensearchv1.OpenSearchCluster]) {
	if uid == "" {
		return nil
	}
	for _, c := range s.clusters {
		all = append(all, c.rows.ListByIndex(byUID, uid)...)
	}
	return all
}

// isNameOwner reports whether the cluster with a UID is declared and is the one that owns its name. If staying is true, the
// cluster must also not be under deletion.
func (s *state) isNameOwner(uid string, staying bool) bool {
	return slices.ContainsFunc(s.clustersWithUID(uid), func(c informer.Object[opensearchv1.OpenSearchCluster]) bool {
		first, _ := s.liveCluster(clusterKey(c.Key.Cluster, c.Key.Namespace, c.Key.Name))
		return first.UID == c.UID && (!staying || c.Value.DeletionTimestamp == nil)
	})
}

// runInput returns the input of a run: the cluster, unless it is missing or being deleted, and its objects of one kind.
// While the cluster is declared, gone objects are included if OpenSearch may still hold something of them.
func (s *state) runInput(k Key) (cluster informer.Object[opensearchv1.OpenSearchCluster], objects []declaredObject) {
	uid := ""
	if c, live := s.liveCluster(k.Cluster); live && c.Value.DeletionTimestamp == nil {
		cluster, uid = c, string(c.Value.UID)
	}
	objects = s.tables[k.Kind].objectsOfCluster(k.Cluster, uid)
	for _, o := range s.tables[k.Kind].deletedObjectsOf(k.Cluster) {
		if uid != "" && s.applyCleared(&o) && o.hasRecord() {
			objects = append(objects, o)
		}
	}
	return cluster, objects
}

// markCleared reduces the record of a gone object to left. Other entities and entries that appear later belong to others. The
// reduction ends with the epoch, because a cluster that was rewound may have had the object again.
func (s *state) markCleared(o declaredObject, left []opensearchv1.Provisioned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleared.putValue(o.Key, o.UID, remains{o.Epoch, left})
}

// applyCleared applies the reduced record to a gone object. It returns false if nothing is left.
func (s *state) applyCleared(o *declaredObject) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, cleared := s.cleared.getValue(o.UID)
	if !cleared || is.epoch != o.Epoch {
		return true
	}
	if b, ok := o.value.(*opensearchv1.OpensearchUserRoleBinding); ok && len(is.left) > 0 {
		b = b.DeepCopy()
		b.Status.Provisioned, b.Status.ProvisionedRoles, o.value = is.left, nil, b
	}
	return len(is.left) > 0
}

// isClusterUsed reports whether an object of any kind names a cluster.
func (s *state) isClusterUsed(cluster event.Key) bool {
	for _, all := range s.tables {
		if len(all.objectsOfCluster(cluster, "")) > 0 {
			return true
		}
	}
	return false
}

// isLiveUID reports whether an object of this UID is live.
func (s *state) isLiveUID(k event.Key, uid string) bool {
	return s.tableFor(k).hasObjectWithUID(k, uid, false)
}

// isClusterNeeded reports whether the cluster with a UID is declared, or the record of an object names it.
func (s *state) isClusterNeeded(uid string) bool {
	needed := len(s.clustersWithUID(uid)) > 0
	for _, all := range s.tables {
		needed = needed || slices.ContainsFunc(all, func(t objectTable) bool { return t.hasObjectsOnCluster(uid) })
	}
	return needed
}
