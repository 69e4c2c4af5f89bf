package opensearchsync

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"connectrpc.com/connect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	opensearchv1 "github.com/entail-dev/entail/gen/entail/opensearch/v1"
	resources "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// objectEdit is an object in its hypothetical state, or one that would be deleted.
type objectEdit struct {
	of declaredObject
	// password means that the object is a new user, or names another Secret for its password.
	password bool
}

// Preview returns the writes to a cluster if objects were applied or deleted. It compares the plan with these changes
// to the plan without them.
func (s *queryServer) Preview(ctx context.Context, request *opensearchv1.PreviewRequest) (*opensearchv1.PreviewResponse, error) {
	cluster, to, err := s.connectToCluster(ctx, request.GetCluster())
	if err != nil {
		return nil, err
	}
	edits, err := s.requestedEdits(request)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	is, err := to.client.ClusterUUID(ctx)
	if err != nil {
		return nil, err
	}
	return readLists(ctx, s, func(lists *search.Allowance) (*opensearchv1.PreviewResponse, error) {
		return s.previewEdits(ctx, previewedCluster{key: cluster.Key, uid: string(cluster.Value.UID), server: is, to: to, lists: lists}, edits)
	})
}

// previewedCluster is the cluster of a preview.
type previewedCluster struct {
	key         event.Key
	uid, server string
	to          *clusterConnection
	lists       *search.Allowance
}

// previewEdits returns the writes and verdicts of edits, by kind.
func (s *queryServer) previewEdits(ctx context.Context, in previewedCluster, edits map[plan.EntityKind]map[event.Key]objectEdit,
) (*opensearchv1.PreviewResponse, error) {
	answer, made := &opensearchv1.PreviewResponse{}, map[plan.EntityKind][]plan.Action{}
	var err error
	for _, kind := range plan.AllKinds() {
		if len(edits[kind]) == 0 && (kind != plan.Mappings || len(edits[plan.Roles]) == 0) {
			continue
		}
		p := kindPreviewer{kind: kind, in: in, edits: edits[kind], objects: s.state.tables[kind].objectsOfCluster(in.key, in.uid)}
		elsewhere := s.state.objectsManagedBy(kind, s.connections.clustersOnSameServer(in.to))
		p.elsewhere, p.claims = bindingsOfOtherClusters(elsewhere, in.server), claimsOfOtherClusters(elsewhere, in.server)
		in.lists.Reset()
		if p.actual, err = in.to.client.List(ctx, kind, in.lists); err != nil {
			return nil, err
		}
		if of, refers := kind.ReferencedKind(); refers {
			err = p.loadReferredNames(ctx, of, made[of])
		}
		if kind == plan.Roles && err == nil {
			err = p.setQueryObstacles(ctx)
		}
		if kind == plan.Users {
			names := plan.GrantNames(toPlanObjects(p.editedObjects(), in.server, nil, nil), p.actual)
			p.grants, err = listProtectedGrants(ctx, in.to.client, in.lists, names)
		}
		if err != nil {
			return nil, err
		}
		made[kind] = p.addToAnswer(answer)
	}
	return answer, nil
}

// requestedEdits returns the requested changes, by kind and key.
func (s *queryServer) requestedEdits(request *opensearchv1.PreviewRequest) (map[plan.EntityKind]map[event.Key]objectEdit, error) {
	all := map[plan.EntityKind]map[event.Key]objectEdit{}
	add := func(kind plan.EntityKind, e objectEdit) {
		if all[kind] == nil {
			all[kind] = map[event.Key]objectEdit{}
		}
		all[kind][e.of.Key] = e
	}
	for i, manifest := range request.GetManifests() {
		kind, e, err := s.objectAfterApply(request.GetCluster(), manifest)
		if err != nil {
			return nil, fmt.Errorf("manifest %d: %w", i+1, err)
		}
		add(kind, e)
	}
	for _, ref := range request.GetDeleted() {
		kind, found, err := s.tablesOfKind("", ref.GetKind())
		if err != nil {
			return nil, err
		}
		o, ok := objectToDelete(found, request.GetCluster(), event.Key{Cluster: s.cluster, Namespace: request.GetCluster().GetNamespace(), Name: ref.GetName()})
		if !ok {
			return nil, fmt.Errorf("%s %s does not exist, or belongs to another cluster", ref.GetKind(), ref.GetName())
		}
		o.value = deepCopyDeclared(o.value)
		o.value.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
		add(kind, objectEdit{of: o})
	}
	return all, nil
}

// objectToDelete returns the object that would be deleted, from the first group that has it in this cluster.
func objectToDelete(in groupTables, cluster *opensearchv1.ClusterRef, k event.Key) (declaredObject, bool) {
	for _, t := range in {
		k.GroupResource = t.kubernetesKind().GroupResource
		if o, ok := t.liveObject(k); ok && o.value.Cluster() == cluster.GetName() {
			return o, true
		}
	}
	return declaredObject{}, false
}

// tablesOfKind returns the tables of a kind by its name in Kubernetes. An empty group matches all groups.
func (s *queryServer) tablesOfKind(group, name string) (kind plan.EntityKind, found groupTables, err error) {
	for _, kind := range plan.AllKinds() {
		for _, t := range s.state.tables[kind] {
			if is := t.kubernetesKind(); is.Kind == name && (group == "" || is.Group == group) {
				found = append(found, t)
			}
		}
		if len(found) > 0 {
			return kind, found, nil
		}
	}
	return "", nil, fmt.Errorf("kind %.64q of %.64q is none of those that a cluster has", name, group)
}

// objectAfterApply returns the object that applying a manifest would produce. It keeps status, UID and times of a live object of
// the name.
func (s *queryServer) objectAfterApply(ref *opensearchv1.ClusterRef, manifest []byte) (plan.EntityKind, objectEdit, error) {
	var object struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(manifest, &object); err != nil {
		return "", objectEdit{}, err
	}
	kind, found, err := s.tablesOfKind(object.GroupVersionKind().Group, object.Kind)
	if err != nil {
		return "", objectEdit{}, err
	}
	in := found[0]
	if object.Name == "" || cmp.Or(object.Namespace, ref.GetNamespace()) != ref.GetNamespace() {
		return "", objectEdit{}, fmt.Errorf("%s %.253q is of another namespace than its cluster, or has no name", object.Kind, object.Name)
	}
	key := event.Key{Cluster: s.cluster, GroupResource: in.kubernetesKind().GroupResource, Namespace: ref.GetNamespace(), Name: object.Name}
	is, there := in.liveObject(key)
	var was any
	if there {
		was = is.value
	}
	if manifest, err = manifestWithStatus(manifest, was); err != nil {
		return "", objectEdit{}, err
	}
	value, err := in.parseManifest(manifest)
	if err != nil {
		return "", objectEdit{}, fmt.Errorf("%s %.253s: %w", object.Kind, object.Name, err)
	}
	if value.Cluster() != ref.GetName() {
		return "", objectEdit{}, fmt.Errorf("%s %.253s is of cluster %.253q", object.Kind, object.Name, value.Cluster())
	}
	e := objectEdit{of: is, password: !there || passwordReferenceOf(value) != passwordReferenceOf(is.value)}
	value.SetNamespace(key.Namespace)
	value.SetUID(types.UID(fmt.Sprintf("preview/%s/%s", kind, key.NamespacedName())))
	value.SetCreationTimestamp(metav1.Now())
	value.SetDeletionTimestamp(nil)
	if there {
		value.SetUID(is.value.GetUID())
		value.SetCreationTimestamp(is.value.GetCreationTimestamp())
		value.SetDeletionTimestamp(is.value.GetDeletionTimestamp())
	}
	e.of.Key, e.of.UID, e.of.value = key, string(value.GetUID()), value
	return kind, e, nil
}

// manifestWithStatus returns a manifest with the status of object, or without one. Applying a manifest cannot change a status.
func manifestWithStatus(manifest []byte, object any) ([]byte, error) {
	var of, is map[string]json.RawMessage
	if err := json.Unmarshal(manifest, &of); err != nil {
		return nil, err
	}
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, &is)
	}
	if err != nil {
		return nil, err
	}
	if delete(of, "status"); len(is["status"]) > 0 {
		of["status"] = is["status"]
	}
	return json.Marshal(of)
}

func passwordReferenceOf(o resources.DeclaredObject) any {
	if user, ok := o.(*resources.OpensearchUser); ok {
		return user.Spec.PasswordFrom
	}
	return nil
}

func deepCopyDeclared(o resources.DeclaredObject) resources.DeclaredObject {
	deep, _ := o.(runtime.Object)
	is, _ := deep.DeepCopyObject().(resources.DeclaredObject)
	return is
}

// kindPreviewer is the preview of one kind.
type kindPreviewer struct {
	kind    plan.EntityKind
	in      previewedCluster
	edits   map[event.Key]objectEdit
	objects []declaredObject
	// elsewhere holds bindings of other cluster objects on the same server. claims holds their objects of other kinds.
	elsewhere []plan.RoleBinding
	claims    []plan.DeclaredObject
	actual    map[string]plan.Entity
	grants    plan.ProtectedGrants
	// has holds the names of existing entities that this kind refers to. willHave holds them as they would be after the
	// changes.
	has, willHave map[string]bool
	// undecided is described at [plan.RoleBinding].
	undecided map[string]bool
}

// loadReferredNames sets has and willHave from a listing of the kind and the actions planned for it.
func (p *kindPreviewer) loadReferredNames(ctx context.Context, of plan.EntityKind, made []plan.Action) error {
	listed, err := p.in.to.client.List(ctx, of, p.in.lists)
	if err != nil {
		return err
	}
	p.has, p.undecided = entityNameSet(listed), plan.RolesUncheckedByAdmission(listed)
	p.willHave = maps.Clone(p.has)
	for _, a := range made {
		if p.willHave[a.Name] = true; a.Body == nil {
			delete(p.willHave, a.Name)
		}
	}
	return nil
}

// setQueryObstacles sets the obstacles of edited roles with a query that the server cannot parse.
func (p *kindPreviewer) setQueryObstacles(ctx context.Context) error {
	for key, e := range p.edits {
		wrong, err := findUnparsableQueries(ctx, p.in.to.client, []declaredObject{e.of})
		if err != nil {
			return err
		}
		e.of.obstacle = wrong[string(e.of.value.GetUID())]
		p.edits[key] = e
	}
	return nil
}

// addToAnswer adds the writes and verdicts of the kind to the answer, and returns the actions.
func (p *kindPreviewer) addToAnswer(answer *opensearchv1.PreviewResponse) []plan.Action {
	before, _ := p.planForPreview(p.objects, p.has)
	after, verdicts := p.planForPreview(p.editedObjects(), p.willHave)
	actions := plan.ActionsNotIn(after, before)
	for _, a := range actions {
		is, there := p.actual[a.Name]
		w := &opensearchv1.Write{Kind: string(p.kind), Name: a.Name, Verb: "CHANGE", Password: a.Password}
		switch {
		case a.Body == nil:
			w.Verb = "DELETE"
		case !there:
			w.Verb = "CREATE"
		}
		for _, d := range p.kind.FieldDifferences(a, is) {
			w.Fields = append(w.Fields, &opensearchv1.FieldChange{Field: d.Field, Before: d.Before, After: d.After})
		}
		answer.Writes = append(answer.Writes, w)
	}
	for _, key := range slices.SortedFunc(maps.Keys(p.edits), func(a, b event.Key) int { return cmp.Compare(a.Name, b.Name) }) {
		o := p.edits[key].of
		verdict := &opensearchv1.Verdict{Object: &opensearchv1.ObjectRef{Kind: o.kind.Kind, Name: key.Name}}
		if v := verdicts[string(o.value.GetUID())]; !o.isDeleting() {
			verdict.State, verdict.Reason, verdict.Message = string(v.State), v.Reason, v.Message
		}
		answer.Verdicts = append(answer.Verdicts, verdict)
	}
	return actions
}

// editedObjects returns the objects with the changes applied.
func (p *kindPreviewer) editedObjects() []declaredObject {
	var all []declaredObject
	for _, o := range p.objects {
		if _, edited := p.edits[o.Key]; !edited {
			all = append(all, o)
		}
	}
	for _, e := range p.edits {
		all = append(all, e.of)
	}
	return all
}

// planForPreview plans for objects without reading a Secret. Only users with edit.password count as having a new password.
func (p *kindPreviewer) planForPreview(objects []declaredObject, referred map[string]bool) (actions []plan.Action, verdicts map[string]plan.Verdict) {
	verdicts = map[string]plan.Verdict{}
	if p.kind == plan.Mappings {
		made := plan.DecideMappings(append(toPlanBindings(objects, p.in.server, p.undecided), p.elsewhere...), p.actual, referred, false)
		for uid, o := range made.Outcomes {
			verdicts[uid] = o.Verdict
		}
		return made.Actions, verdicts
	}
	all := withGrants(toPlanObjects(objects, p.in.server, nil, knownActionGroups(p.kind, referred, p.actual, objects)), p.grants)
	for i, o := range objects {
		if e, edited := p.edits[o.Key]; p.kind == plan.Users && (!edited || e.of.value != o.value || !e.password) {
			all[i] = all[i].WithExistingPassword(p.actual[all[i].Name])
		}
	}
	made := plan.DecideObjects(p.kind, append(all, p.claims...), p.actual)
	for uid, o := range made.Outcomes {
		verdicts[uid] = o.Verdict
	}
	return made.Actions, verdicts
}
