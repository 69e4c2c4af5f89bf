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
	clusters []clusters
	tables   map[plan.Kind]tables
	kinds    map[event.GroupResource]plan.Kind
	// secrets holds the Secrets that the watcher follows.
	secrets *informer.Lister[struct{}]

	mu sync.Mutex
	// cleared holds gone objects of which nothing is left in OpenSearch, with the epoch of their deletion.
	cleared memory[string]
}

// clusters holds the clusters of one group.
type clusters struct {
	group event.GroupResource
	rows  *informer.Lister[opensearchv1.OpenSearchCluster]
}

// object is an object that declares an entity or entries, as the view holds it.
type object struct {
	event.Change
	kind kinds.Kind
	// value has the record that counts in its status. written is the object as the API server holds it, or nil if they
	// are the same.
	value, written opensearchv1.Declared
	// obstacle is the reason why nothing can be written for the object.
	obstacle *plan.Verdict
}

// isGone reports whether an object was deleted before its entity was removed, for example because a user removed its
// finalizer.
func (o object) isGone() bool { return o.Deleted }

// isDeleting reports whether an object is deleted or being deleted, so that nothing of it must remain.
func (o object) isDeleting() bool { return o.isGone() || o.value.GetDeletionTimestamp() != nil }

// isAbout reports whether the status of an object can be about a server. A status without a server can be about any.
func (o object) isAbout(server string) bool {
	of := o.value.State().ManagedServer
	return of == "" || of == server
}

// hadEntity returns whether the server had the entity before the object. It returns nil if that was never checked.
func (o object) hadEntity(server string) *bool {
	if !o.isAbout(server) {
		return nil
	}
	return o.value.Existing()
}

// isOn reports whether an object was made on the server of a run, or on none yet. The server counts, not the
// OpenSearchCluster: a server may be declared again, and an OpenSearchCluster may change its server.
func (o object) isOn(w syncInput) bool {
	s := o.value.State()
	if s.ManagedServer == "" {
		return s.ManagedCluster == "" || s.ManagedCluster == string(w.cluster.UID)
	}
	return s.ManagedServer == w.server
}

// statusFields returns the fields of the status as the API server holds it.
func (o object) statusFields() fields {
	if o.written == nil {
		return fieldsOf(o.value)
	}
	return fieldsOf(o.written)
}

// isLost reports whether an object was in step and has lost its record. Users cannot be lost, because an attribute in
// OpenSearch names their object.
func (o object) isLost() bool {
	s := o.value.State()
	if s.ManagedServer != "" || s.State != opensearchv1.Created && !strings.HasPrefix(s.Reason, recordMissing) {
		return false
	}
	switch value := o.value.(type) {
	case *opensearchv1.OpensearchUser:
		return false
	case *opensearchv1.OpensearchUserRoleBinding:
		return len(recordedEntries(value.Status)) == 0
	default:
		return value.Existing() == nil
	}
}

// hasRecord reports whether OpenSearch may hold something of an object, by its record.
func (o object) hasRecord() bool {
	switch value := o.value.(type) {
	case *opensearchv1.OpensearchUser: // The user in OpenSearch names its object.
		return o.isGone() || value.Status.ManagedCluster != ""
	case *opensearchv1.OpensearchUserRoleBinding:
		return len(recordedEntries(value.Status)) > 0
	default:
		existing := value.Existing()
		return existing != nil && !*existing
	}
}

// table is a table of objects of one kind and group.
type table interface {
	// objectsOf returns the objects that name a cluster, or that are in it by their record.
	objectsOf(cluster event.Key, uid string) []object
	// goneObjects returns the deleted objects that named a cluster.
	goneObjects(cluster event.Key) []object
	// expectedState returns the state that the API server must hold under the name of an object. If o is gone and its name is
	// taken again, that is the state of the newer object.
	expectedState(o object) verify.Expected
	// parseManifest decodes a manifest and rejects unknown fields. live returns the object of a name.
	parseManifest(manifest []byte) (opensearchv1.Declared, error)
	liveObject(k event.Key) (object, bool)
	// kindOf returns the kind in Kubernetes.
	kindOf() kinds.Kind
	// clusterOf returns the cluster that the newest known state of an object names, and the cluster UID in its record.
	clusterOf(k event.Key) (clusterOf event.Key, managed string, ok bool)
	// clustersNaming returns the clusters of objects that name a Secret.
	clustersNaming(secret event.Key) []event.Key
	// hasState reports whether an object of this name and UID is live, or, if gone is true, has a tombstone.
	hasState(k event.Key, uid string, gone bool) bool
	// isManaged reports whether the record of any object names the cluster with a UID.
	isManaged(uid string) bool
}

// newState registers the tables in v. It uses those of the legacy group only if legacy is true.
func newState(v *informer.Informer, legacy bool) *state {
	s := &state{tables: map[plan.Kind]tables{}, kinds: map[event.GroupResource]plan.Kind{}}
	s.cleared = newMemory[string](func(k event.Key, uid string) bool { return s.tableFor(k).hasState(k, uid, true) })
	s.secrets = informer.Register[struct{}](v, kinds.Secrets(), nil)
	index := map[string]func(*opensearchv1.OpenSearchCluster) []string{
		byUID:    func(c *opensearchv1.OpenSearchCluster) []string { return []string{string(c.UID)} },
		bySecret: secretsOf[*opensearchv1.OpenSearchCluster],
	}
	for _, kind := range bothGroups(kinds.OpenSearchClusters()) {
		if rows := informer.Register(v, kind, index); legacy || !kind.Optional {
			s.clusters = append(s.clusters, clusters{kind.GroupResource, rows})
		}
	}
	declareTable[opensearchv1.OpensearchUser](s, v, kinds.OpenSearchUsers(), plan.Users, legacy)
	declareTable[opensearchv1.OpensearchRole](s, v, kinds.OpenSearchRoles(), plan.Roles, legacy)
	declareTable[opensearchv1.OpensearchUserRoleBinding](s, v, kinds.OpenSearchBindings(), plan.Mappings, legacy)
	declareTable[opensearchv1.OpensearchTenant](s, v, kinds.OpenSearchTenants(), plan.Tenants, legacy)
	declareTable[opensearchv1.OpensearchActionGroup](s, v, kinds.OpenSearchActionGroups(), plan.ActionGroups, legacy)
	return s
}

// bothGroups returns a kind in its present and its legacy group.
func bothGroups(kind kinds.Kind) []kinds.Kind { return []kinds.Kind{kind, kinds.Legacy(kind)} }

// declared is the constraint for a pointer to T that is a declared object.
type declared[T any] interface {
	*T
	opensearchv1.Declared
	runtime.Object
}

type tableOf[T any, P declared[T]] struct {
	kind kinds.Kind
	rows *informer.Lister[T]
}

func declareTable[T any, P declared[T]](s *state, v *informer.Informer, kind kinds.Kind, of plan.Kind, legacy bool) {
	index := map[string]func(*T) []string{
		byCluster: func(value *T) []string { return []string{clusterName(P(value))} },
		byUID:     func(value *T) []string { return []string{P(value).State().ManagedCluster} },
		bySecret:  func(value *T) []string { return secretsOf(P(value)) },
	}
	for _, kind := range bothGroups(kind) {
		if rows := informer.Register(v, kind, index); legacy || !kind.Optional {
			s.tables[of] = append(s.tables[of], tableOf[T, P]{kind, rows})
			s.kinds[kind.GroupResource] = of
		}
	}
}

func clusterName(o opensearchv1.Declared) string { return o.GetNamespace() + "/" + o.Cluster() }

func (t tableOf[T, P]) objectsOf(cluster event.Key, uid string) []object {
	rows := t.rows.By(byCluster, cluster.Path())
	if uid != "" {
		rows = append(slices.Clone(rows), t.rows.By(byUID, uid)...)
	}
	return t.toObjects(cluster, rows)
}

func (t tableOf[T, P]) goneObjects(cluster event.Key) []object {
	rows := slices.DeleteFunc(slices.Clone(t.rows.GoneBy(byCluster, cluster.Path())), func(o informer.Object[T]) bool {
		is, live := t.rows.Get(o.Key)
		return live && is.UID == o.UID || o.Value == nil
	})
	for i := range rows {
		rows[i].Deleted = true
	}
	return t.toObjects(cluster, rows)
}

// toObjects returns the rows in the namespace of a cluster, each once.
func (t tableOf[T, P]) toObjects(cluster event.Key, rows []informer.Object[T]) (all []object) {
	seen := map[string]bool{}
	for _, o := range rows {
		if o.Key.Cluster == cluster.Cluster && o.Key.Namespace == cluster.Namespace && !seen[o.UID] {
			seen[o.UID] = true
			all = append(all, object{Change: o.Change, kind: t.kind, value: withRecord(P(o.Value)), written: P(o.Value)})
		}
	}
	return all
}

func (t tableOf[T, P]) expectedState(o object) verify.Expected {
	if newer, taken := t.liveObject(o.Key); taken && o.isGone() {
		o = newer
	}
	value, _ := o.value.(P)
	return verify.Expect(informer.Object[T]{Change: o.Change, Value: (*T)(value)}, func(value *T) (declared, recorded any) {
		return relevantFields(P(value)), nil
	})
}

func (t tableOf[T, P]) parseManifest(manifest []byte) (opensearchv1.Declared, error) {
	value := P(new(T))
	decoder := json.NewDecoder(bytes.NewReader(manifest))
	decoder.DisallowUnknownFields()
	return value, decoder.Decode(value)
}

func (t tableOf[T, P]) liveObject(k event.Key) (object, bool) {
	o, ok := t.rows.Get(k)
	found := object{Change: o.Change, kind: t.kind, value: P(o.Value), written: P(o.Value)}
	if ok {
		found.value = withRecord(found.value)
	}
	return found, ok
}

func (t tableOf[T, P]) kindOf() kinds.Kind { return t.kind }

func (t tableOf[T, P]) hasState(k event.Key, uid string, gone bool) bool {
	if !gone {
		o, live := t.rows.Get(k)
		return live && o.UID == uid
	}
	return slices.ContainsFunc(t.rows.Gone(k), func(o informer.Object[T]) bool { return o.UID == uid })
}

func (t tableOf[T, P]) isManaged(uid string) bool { return t.rows.Count(byUID, uid) > 0 }

// relevantFields returns the parts of an object on which decisions depend.
func relevantFields(o opensearchv1.Declared) any {
	kept, _ := copyIn(o)
	o = withRecord(o)
	all := []any{
		kept.Connection, o.GetAnnotations()[opensearchv1.ForgetAnnotation],
		o.Cluster(), o.Entity(), plan.BodyOf(o), o.Existing(), o.State().ManagedCluster, o.State().ManagedServer, o.GetDeletionTimestamp() != nil,
		o.GetAnnotations()[opensearchv1.AdoptAnnotation], o.GetAnnotations()[opensearchv1.SourceUIDAnnotation],
		o.GetAnnotations()[opensearchv1.BindAnnotation],
	}
	switch o := o.(type) {
	case *opensearchv1.OpensearchUser:
		return append(all, o.Spec.PasswordFrom)
	case *opensearchv1.OpensearchUserRoleBinding:
		return append(all, o.Spec, recordedEntries(o.Status))
	}
	return all
}

// expectCluster returns the expected state of a cluster: the fields on which its connection depends.
func expectCluster(o informer.Object[opensearchv1.OpenSearchCluster]) verify.Expected {
	return verify.Expect(o, func(c *opensearchv1.OpenSearchCluster) (declared, recorded any) {
		return []any{c.Spec, c.Status.Phase, c.Annotations[opensearchv1.ConnectionAnnotation], c.DeletionTimestamp != nil}, nil
	})
}

func (t tableOf[T, P]) clusterOf(k event.Key) (clusterOf event.Key, managed string, ok bool) {
	o, _ := t.rows.Last(k)
	if o.Value == nil {
		return event.Key{}, "", false
	}
	return clusterKey(k.Cluster, k.Namespace, P(o.Value).Cluster()), P(o.Value).State().ManagedCluster, true
}

// clusterKey returns the key of a cluster, whatever group declares it. Both groups share one document of each kind.
func clusterKey(cluster, namespace, name string) event.Key {
	return event.Key{Cluster: cluster, GroupResource: kinds.OpenSearchClusters().GroupResource, Namespace: namespace, Name: name}
}

// affectedKeys returns the keys that a change of an object affects.
func (s *state) affectedKeys(k event.Key) []Key {
	switch k.Resource {
	case kinds.OpenSearchClusters().Resource:
		return everythingIn(clusterKey(k.Cluster, k.Namespace, k.Name))
	case kinds.Secrets().Resource:
		return s.keysReading(k)
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
func (s *state) tableFor(k event.Key) table {
	return s.tables[s.kinds[k.GroupResource]].tableIn(k.GroupResource)
}

// everythingIn returns all keys of a cluster.
func everythingIn(cluster event.Key) (all []Key) {
	for _, kind := range plan.Kinds() {
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
		all = append(all, c.rows.By(byUID, uid)...)
	}
	return all
}

// isDeciding reports whether the cluster with a UID is declared and is the one that owns its name. If staying is true, the
// cluster must also not be under deletion.
func (s *state) isDeciding(uid string, staying bool) bool {
	return slices.ContainsFunc(s.clustersWithUID(uid), func(c informer.Object[opensearchv1.OpenSearchCluster]) bool {
		first, _ := s.liveCluster(clusterKey(c.Key.Cluster, c.Key.Namespace, c.Key.Name))
		return first.UID == c.UID && (!staying || c.Value.DeletionTimestamp == nil)
	})
}

// runInput returns the input of a run: the cluster, unless it is missing or being deleted, and its objects of one kind.
// While the cluster is declared, gone objects are included if OpenSearch may still hold something of them.
func (s *state) runInput(k Key) (cluster informer.Object[opensearchv1.OpenSearchCluster], objects []object) {
	uid := ""
	if c, live := s.liveCluster(k.Cluster); live && c.Value.DeletionTimestamp == nil {
		cluster, uid = c, string(c.Value.UID)
	}
	objects = s.tables[k.Kind].objectsOf(k.Cluster, uid)
	for _, o := range s.tables[k.Kind].goneObjects(k.Cluster) {
		if uid != "" && !s.isCleared(o) && o.hasRecord() {
			objects = append(objects, o)
		}
	}
	return cluster, objects
}

// clearGone records that nothing is left of a gone object: an entity of its name that appears later belongs to others. The
// record ends with the epoch, because a cluster that was rewound may have had the object again.
func (s *state) clearGone(o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleared.putValue(o.Key, o.UID, o.Epoch)
}

func (s *state) isCleared(o object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	epoch, is := s.cleared.getValue(o.UID)
	return is && epoch == o.Epoch
}

// isUsed reports whether an object of any kind names a cluster.
func (s *state) isUsed(cluster event.Key) bool {
	for _, all := range s.tables {
		if len(all.objectsOf(cluster, "")) > 0 {
			return true
		}
	}
	return false
}

// hasLive reports whether an object of this UID is live.
func (s *state) hasLive(k event.Key, uid string) bool { return s.tableFor(k).hasState(k, uid, false) }

// isNeeded reports whether the cluster with a UID is declared, or the record of an object names it.
func (s *state) isNeeded(uid string) bool {
	needed := len(s.clustersWithUID(uid)) > 0
	for _, all := range s.tables {
		needed = needed || slices.ContainsFunc(all, func(t table) bool { return t.isManaged(uid) })
	}
	return needed
}
