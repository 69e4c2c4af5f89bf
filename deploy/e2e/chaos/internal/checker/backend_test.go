package checker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/klauspost/compress/zstd"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// backend is an OpenFGA with the configured content, which it returns in pages of two.
type backend struct {
	openfgav1.OpenFGAServiceClient

	stores []*openfgav1.Store
	models map[string]*openfgav1.AuthorizationModel
	tuples map[string][]Tuple
	// yes holds the questions with the answer yes, batches the sizes of the received batches.
	yes     []Tuple
	batches []int
	err     error
}

const page = 2

// paged returns a page of a list, and the token of the next page.
func paged[T any](all []T, token string) ([]T, string) {
	at, _ := strconv.Atoi(token)
	end := min(at+page, len(all))
	if end == len(all) {
		return all[at:end], ""
	}
	return all[at:end], strconv.Itoa(end)
}

func (b *backend) ListStores(_ context.Context, r *openfgav1.ListStoresRequest, _ ...grpc.CallOption) (*openfgav1.ListStoresResponse, error) {
	stores, next := paged(b.stores, r.GetContinuationToken())
	return &openfgav1.ListStoresResponse{Stores: stores, ContinuationToken: next}, b.err
}

func (b *backend) ReadAuthorizationModels(
	_ context.Context, r *openfgav1.ReadAuthorizationModelsRequest, _ ...grpc.CallOption,
) (*openfgav1.ReadAuthorizationModelsResponse, error) {
	m := &openfgav1.ReadAuthorizationModelsResponse{}
	if model := b.models[r.GetStoreId()]; model != nil {
		m.AuthorizationModels = append(m.AuthorizationModels, model)
	}
	return m, b.err
}

func (b *backend) ReadAuthorizationModel(
	_ context.Context, r *openfgav1.ReadAuthorizationModelRequest, _ ...grpc.CallOption,
) (*openfgav1.ReadAuthorizationModelResponse, error) {
	model := b.models[r.GetStoreId()]
	if model.GetId() != r.GetId() {
		return nil, fmt.Errorf("there is no model %s", r.GetId())
	}
	return &openfgav1.ReadAuthorizationModelResponse{AuthorizationModel: model}, b.err
}

func (b *backend) Read(_ context.Context, r *openfgav1.ReadRequest, _ ...grpc.CallOption) (*openfgav1.ReadResponse, error) {
	found, next := paged(b.tuples[r.GetStoreId()], r.GetContinuationToken())
	m := &openfgav1.ReadResponse{ContinuationToken: next}
	for _, t := range found {
		m.Tuples = append(m.Tuples, &openfgav1.Tuple{Key: &openfgav1.TupleKey{Object: t.Object, Relation: t.Relation, User: t.User}})
	}
	return m, b.err
}

func (b *backend) BatchCheck(_ context.Context, r *openfgav1.BatchCheckRequest, _ ...grpc.CallOption) (*openfgav1.BatchCheckResponse, error) {
	b.batches = append(b.batches, len(r.GetChecks()))
	m := &openfgav1.BatchCheckResponse{Result: map[string]*openfgav1.BatchCheckSingleResult{}}
	for _, c := range r.GetChecks() {
		allowed := slices.Contains(b.yes, Tuple{c.GetTupleKey().GetObject(), c.GetTupleKey().GetRelation(), c.GetTupleKey().GetUser()})
		m.Result[c.GetCorrelationId()] = &openfgav1.BatchCheckSingleResult{
			CheckResult: &openfgav1.BatchCheckSingleResult_Allowed{Allowed: allowed},
		}
	}
	return m, b.err
}

// calmWorld is a correct system at rest.
type calmWorld struct {
	t       *testing.T
	objects map[schema.GroupVersionResource][]*unstructured.Unstructured
	fga     *backend
}

func (r *calmWorld) put(kind schema.GroupVersionResource, namespace, name string, spec, status map[string]any) *unstructured.Unstructured {
	o := object(kind.Resource, namespace, name, map[string]any{"spec": spec})
	o.SetGeneration(3)
	if status != nil {
		o.Object["status"] = status
	}
	r.objects[kind] = append(r.objects[kind], &o)
	return &o
}

// says returns a status with these conditions, all of them True.
func says(conditions ...string) map[string]any {
	var list []any
	for _, c := range conditions {
		list = append(list, map[string]any{"type": c, "status": "True", "observedGeneration": int64(3), "reason": "R", "message": "m"})
	}
	return map[string]any{"conditions": list}
}

func (r *calmWorld) part(name, store, text string, tuples ...any) *unstructured.Unstructured {
	status := says("Merged", "Ready")
	status["managedTuples"] = tuples
	spec := map[string]any{"storeRef": map[string]any{"name": store}, "model": text, "tuples": tuples}
	o := r.put(workload.AuthorizationModelResource(), "", name, spec, status)
	if len(tuples) > 0 {
		o.SetFinalizers([]string{tuplesFinalizer})
	}
	return o
}

func (r *calmWorld) bind(namespace, name, role string, who ...string) *unstructured.Unstructured {
	o := r.put(workload.RoleBindingResource(), namespace, name, nil, nil)
	var all []any
	for _, w := range who {
		all = append(all, map[string]any{"kind": "User", "name": w})
	}
	o.Object["subjects"], o.Object["roleRef"] = all, map[string]any{"kind": "Role", "name": role}
	return o
}

func (r *calmWorld) follow(namespace, name, source, role string, who ...string) *unstructured.Unstructured {
	o := r.bind(namespace, name, role, who...)
	o.SetLabels(map[string]string{managedBy: "implied-role"})
	o.SetOwnerReferences([]metav1.OwnerReference{{Name: source}})
	return o
}

func (r *calmWorld) implies(name, parent, child string, all ...any) {
	status := says("Accepted", "Synced")
	status["inferences"] = map[string]any{"child_roles": all}
	r.put(workload.ImpliedRolesResource(), "team-0", name, map[string]any{
		"inference_rule": map[string]any{"parent_role": parent, "child_role": child},
	}, status)
}

const (
	partText = "module part\ntype part\n  relations\n    define viewer: [user]\n"
	doorText = "module door\ntype door\n  relations\n    define open: [user]\n"
	gearText = "module gears\ntype gear\n"
)

// atRest returns a world with a Store and three modules: of a user, of a document and of a definition. It also has two
// rules, and the RoleBindings that follow from one RoleBinding.
func atRest(t *testing.T) *calmWorld {
	t.Helper()
	r := &calmWorld{t: t, objects: map[schema.GroupVersionResource][]*unstructured.Unstructured{}, fga: &backend{
		stores: []*openfgav1.Store{{Id: "id-0", Name: "store-0"}},
		models: map[string]*openfgav1.AuthorizationModel{}, tuples: map[string][]Tuple{"id-0": {
			{"doc:1", "editor", "user:1"}, {"doc:2", "viewer", "user:2"}, {"part:1", "viewer", "user:1"},
		}},
	}}
	status := says("Ready")
	status["storeId"], status["authorizationModelId"] = "id-0", "model-0"
	tuples := []any{tuple("doc:1", "editor", "user:1"), tuple("doc:2", "viewer", "user:2")}
	status["managedTuples"] = tuples
	store := r.put(workload.StoreResource(), "", "store-0", map[string]any{"coreModule": text, "tuples": tuples}, status)
	store.SetFinalizers([]string{storeFinalizer, tuplesFinalizer})
	r.part("part", "store-0", partText, tuple("part:1", "viewer", "user:1"))
	r.part("policydocument.default.door.x1", "store-0", doorText)
	r.part("gears-store-0", "store-0", gearText)
	model, err := compileModules(Module{Name: "core", Text: text}, Module{Name: "part", Text: partText}, Module{Name: "door", Text: doorText}, Module{Name: "gears", Text: gearText})
	if err != nil {
		t.Fatal(err)
	}
	model.Id = "model-0"
	r.fga.models["id-0"] = model
	r.put(workload.PolicyDocumentResource(), "default", "door", map[string]any{
		"storeRef": map[string]any{"name": "store-0"}, "actions": []any{map[string]any{"name": "open"}},
	}, says("Valid", "Ready"))
	gears := r.put(workload.DefinitionResource(), "", "gears."+workload.DefinitionGroup, nil, nil)
	gears.SetLabels(map[string]string{workload.StoreLabel: "store-0"})
	r.put(workload.DefinitionResource(), "", "gadgets."+workload.DefinitionGroup, nil, nil)
	r.put(workload.DefinitionResource(), "", "stores.core.platform-mesh.io", nil, nil)
	r.implies("one", "a", "b", "b", "c")
	r.implies("two", "b", "c", "c")
	r.bind("team-0", "source", "a", "alice", "bob")
	r.follow("team-0", "source-b", "source", "b", "alice", "bob")
	r.follow("team-0", "source-c", "source", "c", "bob", "alice")
	r.bind("kube-system", "of-somebody-else", "a", "carol")
	return r
}

func (r *calmWorld) snapshot() *ObjectSnapshot {
	s := &ObjectSnapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
	for kind, objects := range r.objects {
		for _, o := range objects {
			s.byKind[kind] = append(s.byKind[kind], *o)
		}
	}
	return s
}

// accusations returns the errors of the checks of objects and backends. It leaves out the checks of NATS and of the
// services.
func (r *calmWorld) accusations() error {
	r.t.Helper()
	w := &CheckedSystem{FGA: &OpenFGAClient{api: r.fga}, Snapshot: r.snapshot()}
	all := allChecks()
	var errs []error
	for _, check := range all[:len(all)-3] {
		errs = append(errs, check(r.t.Context(), w))
	}
	return errors.Join(errs...)
}

func (r *calmWorld) get(kind schema.GroupVersionResource, name string) *unstructured.Unstructured {
	r.t.Helper()
	for _, o := range r.objects[kind] {
		if o.GetName() == name {
			return o
		}
	}
	r.t.Fatalf("there is no %s %s", kind.Resource, name)
	return nil
}

func (r *calmWorld) drop(kind schema.GroupVersionResource, name string) {
	r.get(kind, name)
	r.objects[kind] = slices.DeleteFunc(r.objects[kind], func(o *unstructured.Unstructured) bool { return o.GetName() == name })
}

// set sets the field at a path.
func (r *calmWorld) set(o *unstructured.Unstructured, value any, path ...string) {
	r.t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		r.t.Fatal(err)
	}
}

// pack stores the record of a Store in the packed form of a large record, with some more tuples.
func (r *calmWorld) pack(store string, more ...any) {
	r.t.Helper()
	o := r.get(workload.StoreResource(), store)
	listed, _, _ := unstructured.NestedSlice(o.Object, "status", "managedTuples")
	list, err := json.Marshal(append(listed[:1], more...))
	if err != nil {
		r.t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.set(o, base64.StdEncoding.EncodeToString(encoder.EncodeAll(list, nil)), "status", "ledger", "data")
	r.set(o, []any{tuple("doc:2", "viewer", "user:2")}, "status", "ledger", "pending")
	r.set(o, []any{}, "status", "managedTuples")
}

// turn changes the status of a condition.
func (r *calmWorld) turn(o *unstructured.Unstructured, name, status string) {
	r.t.Helper()
	r.edit(o, name, "status", status)
}

// edit changes one field of a condition.
func (r *calmWorld) edit(o *unstructured.Unstructured, name, key string, value any) {
	r.t.Helper()
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == name {
			c[key] = value
			r.set(o, list, "status", "conditions")
			return
		}
	}
	r.t.Fatal(fmt.Errorf("%s has no condition %s", o.GetName(), name))
}

func going(o *unstructured.Unstructured) {
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
}
