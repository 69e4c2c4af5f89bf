//go:build integration

package tuplesync_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	tuplesync "github.com/entail-dev/entail/services/tuple-sync"
)

const (
	ns          = "default"
	projectType = "resourcemanager.miloapis.com/Project"
	orgType     = "resourcemanager.miloapis.com/Organization"
	getProject  = "resourcemanager.miloapis.com/projects.get"
	editProject = "resourcemanager.miloapis.com/projects.update"
)

// iamTestEnv has an IAM store whose model is that of projects in organizations.
type iamTestEnv struct {
	*testEnv

	id string
	// namespace is where objects are made.
	namespace string
	// bindings counts those with names of their own.
	bindings int
}

func newIAMTestEnv(t testing.TB) *iamTestEnv {
	t.Helper()
	b := &iamTestEnv{testEnv: newTestEnv(t), namespace: ns}
	b.register("organization", orgType, "organizations")
	b.register("project", projectType, "projects", orgType)
	b.Kube.Apply(t, kinds.Stores(), "iam", corev1alpha1.StoreSpec{CoreModule: "module entail\n\ntype cluster\n", Adoption: corev1alpha1.AdoptionAlways})
	b.makeStore()
	return b
}

// makeStore does what store-sync does when there is no store.
func (b *iamTestEnv) makeStore() {
	b.T.Helper()
	var err error
	if b.id, err = b.hand.CreateStore(b.T.Context(), "iam"); err != nil {
		b.T.Fatal(err)
	}
	b.remodel()
}

func (b *iamTestEnv) register(name, typ, plural string, parents ...string) {
	b.T.Helper()
	spec := iamv1alpha1.ProtectedResourceSpec{Plural: plural, Singular: name, Permissions: []string{"get", "update"}}
	spec.ServiceRef.Name, spec.Kind, _ = strings.Cut(typ, "/")
	for _, parent := range parents {
		group, kind, _ := strings.Cut(parent, "/")
		spec.ParentResources = append(spec.ParentResources, iamv1alpha1.ParentResourceRef{APIGroup: group, Kind: kind})
	}
	b.Kube.Apply(b.T, kinds.ProtectedResources(), name, spec)
}

// remodel does what store-sync does when ProtectedResources change.
func (b *iamTestEnv) remodel() {
	b.T.Helper()
	modelID, err := b.hand.WriteModel(b.T.Context(), b.id, b.modelOf())
	if err != nil {
		b.T.Fatal(err)
	}
	b.rule(kinds.Stores(), "iam", corev1alpha1.ModelSynced, map[string]any{"storeId": b.id, "authorizationModelId": modelID})
}

// modelOf is the model that follows from ProtectedResources.
func (b *iamTestEnv) modelOf() *openfgav1.AuthorizationModel {
	b.T.Helper()
	m, err := transformer.TransformDSLToProto("model\n  schema 1.1\ntype cluster\ntype user\ntype store\n  relations\n    define owner: [cluster, user]\n")
	if err != nil {
		b.T.Fatal(err)
	}
	m.SchemaVersion = "1.2"
	for _, t := range iam.NewRegistry(testenv.ListTyped[iamv1alpha1.ProtectedResource](b.Env, kinds.ProtectedResources())).TypeDefinitions() {
		t.Metadata.Module = ""
		m.TypeDefinitions = append(m.TypeDefinitions, t)
	}
	return m
}

// apply applies an object, in the bed's namespace if its kind has namespaces, and returns its metadata.
func (b *iamTestEnv) apply(kind kinds.Kind, name string, spec any) metav1.ObjectMeta {
	b.T.Helper()
	fields := map[string]any{}
	if spec != nil {
		fields["spec"] = spec
	}
	u, err := b.Kube.ApplyFields(b.T, kind.InNamespace(b.namespaceOf(kind)), name, fields)
	if err != nil {
		b.T.Fatal(err)
	}
	return metav1.ObjectMeta{Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID()}
}

func (b *iamTestEnv) namespaceOf(kind kinds.Kind) string {
	if kind.ClusterScoped {
		return ""
	}
	return b.namespace
}

func (b *iamTestEnv) remove(kind kinds.Kind, name string) {
	b.T.Helper()
	err := b.ResourceClient(kind).Namespace(b.namespaceOf(kind)).Delete(b.T.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		b.T.Fatal(err)
	}
}

func (b *iamTestEnv) user(name string) metav1.ObjectMeta {
	return b.apply(kinds.IAMUsers(), name, iamv1alpha1.UserSpec{Email: name + "@example.com"})
}

func (b *iamTestEnv) role(name string, inherits []string, permissions ...string) {
	spec := iamv1alpha1.RoleSpec{IncludedPermissions: permissions, LaunchStage: "Beta"}
	for _, other := range inherits {
		spec.InheritedRoles = append(spec.InheritedRoles, iamv1alpha1.ScopedRoleReference{Name: other})
	}
	b.apply(kinds.IAMRoles(), name, spec)
}

func (b *iamTestEnv) org(name string) metav1.ObjectMeta {
	return b.apply(kinds.Organizations(), name, resourcemanagerv1alpha1.OrganizationSpec{Type: "Standard"})
}

func (b *iamTestEnv) project(name, org string) metav1.ObjectMeta {
	return b.apply(kinds.Projects(), name, resourcemanagerv1alpha1.ProjectSpec{
		OwnerRef: resourcemanagerv1alpha1.OwnerReference{Kind: "Organization", Name: org},
	})
}

func user(m metav1.ObjectMeta) iamv1alpha1.Subject {
	return iamv1alpha1.Subject{Kind: "User", Name: m.Name, UID: string(m.UID)}
}

func group(m metav1.ObjectMeta) iamv1alpha1.Subject {
	return iamv1alpha1.Subject{Kind: "Group", Name: m.Name, Namespace: m.Namespace, UID: string(m.UID)}
}

// on is one object, or without an object the whole kind.
func on(typ string, object ...metav1.ObjectMeta) iamv1alpha1.ResourceSelector {
	apiGroup, kind, _ := strings.Cut(typ, "/")
	if len(object) == 0 {
		return iamv1alpha1.ResourceSelector{ResourceKind: &iamv1alpha1.ResourceKind{APIGroup: apiGroup, Kind: kind}}
	}
	return iamv1alpha1.ResourceSelector{ResourceRef: &iamv1alpha1.ResourceReference{
		APIGroup: apiGroup, Kind: kind, Namespace: object[0].Namespace, Name: object[0].Name, UID: string(object[0].UID),
	}}
}

func (b *iamTestEnv) bind(name, role string, on iamv1alpha1.ResourceSelector, subjects ...iamv1alpha1.Subject) {
	b.T.Helper()
	b.apply(kinds.PolicyBindings(), name, iamv1alpha1.PolicyBindingSpec{
		RoleRef: iamv1alpha1.RoleReference{Name: role}, Subjects: subjects, ResourceSelector: on,
	})
}

func (b *iamTestEnv) join(name, user string, group metav1.ObjectMeta) {
	b.T.Helper()
	spec := iamv1alpha1.GroupMembershipSpec{UserRef: iamv1alpha1.UserReference{Name: user}}
	spec.GroupRef.Name, spec.GroupRef.Namespace = group.Name, group.Namespace
	b.apply(kinds.GroupMemberships(), name, spec)
}

// may asks OpenFGA whether a user has a permission on the project web.
func (b *iamTestEnv) may(user, permission string) bool {
	b.T.Helper()
	return b.mayOn(user, permission, projectType, metav1.ObjectMeta{Name: "web"})
}

// mayOn asks so about any object.
func (b *iamTestEnv) mayOn(user, permission, typ string, target metav1.ObjectMeta) bool {
	b.T.Helper()
	object := iam.OpenFGAObject(typ, target.Namespace, target.Name)
	answer, err := b.hand.Check(b.T.Context(), &openfgav1.CheckRequest{
		StoreId: b.id, TupleKey: &openfgav1.CheckRequestTupleKey{User: iam.UserSubject(user), Relation: iam.RelationOf(permission), Object: object},
		ContextualTuples: &openfgav1.ContextualTupleKeys{TupleKeys: []*openfgav1.TupleKey{{User: iam.RootObject(typ), Relation: "k", Object: object}}},
		Consistency:      openfgav1.ConsistencyPreference_HIGHER_CONSISTENCY,
	})
	if err != nil {
		b.T.Fatal(err)
	}
	return answer.GetAllowed()
}

func (b *iamTestEnv) awaits(allowed bool, user, permission string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		if b.may(user, permission) != allowed {
			return fmt.Errorf("%s may %s: %v", user, permission, !allowed)
		}
		return nil
	})
}

// ready waits until the condition Ready of an object has a reason.
func (b *iamTestEnv) ready(kind kinds.Kind, name, reason string) {
	b.T.Helper()
	b.AwaitCondition(kind.InNamespace(b.namespaceOf(kind)), name, iamv1alpha1.Ready, reason)
}

func (b *iamTestEnv) awaitNone(kind kinds.Kind, name string) {
	b.T.Helper()
	b.AwaitGone(kind.InNamespace(b.namespaceOf(kind)), name)
}

const (
	bound     = iamv1alpha1.ReconciliationSuccessful
	belonging = iamv1alpha1.Reconciled
)

func TestBindingsGrantOnObjectKindAndParent(t *testing.T) {
	b := newIAMTestEnv(t)
	b.StartReflector()
	b.serve()
	alice, bob := b.user("alice"), b.user("bob")
	b.user("carol")
	org := b.org("acme")
	web := b.project("web", "acme")
	b.role("viewer", nil, getProject)
	b.role("editor", []string{"viewer"}, editProject)
	staff := b.apply(kinds.IAMGroups(), "staff", nil)
	b.join("carol-staff", "carol", staff)
	b.bind("one", "viewer", on(projectType, web), user(alice))
	b.bind("kind", "viewer", on(projectType), user(bob))
	b.bind("parent", "editor", on(orgType, org), group(staff))
	for _, name := range []string{"one", "kind", "parent"} {
		b.ready(kinds.PolicyBindings(), name, bound)
	}
	b.ready(kinds.GroupMemberships(), "carol-staff", belonging)
	b.ready(kinds.IAMRoles(), "editor", bound)
	b.ready(kinds.IAMRoles(), "viewer", bound)
	b.ready(kinds.IAMUsers(), "alice", belonging)
	b.ready(kinds.IAMGroups(), "staff", belonging)
	b.ready(kinds.Organizations(), "acme", belonging)
	b.ready(kinds.Projects(), "web", belonging)
	b.AwaitCaughtUp(topology.TupleSync)
	for _, q := range []struct {
		user, permission string
		want             bool
	}{
		{"alice", getProject, true},
		{"alice", editProject, false},
		{"bob", getProject, true},
		{"bob", editProject, false},
		{"carol", getProject, true},
		{"carol", editProject, true},
		{"nobody", getProject, false},
	} {
		if got := b.may(q.user, q.permission); got != q.want {
			t.Errorf("%s may %s: %v", q.user, q.permission, got)
		}
	}
	b.AwaitNoCalls()
	b.CheckNoWrites("a resync", func() { b.RequestResync(topology.TupleSync) })
}

// Software that does more for a project, or a user, says itself whether it is ready.
func TestForeignReadyConditionIsKept(t *testing.T) {
	b := newIAMTestEnv(t)
	b.StartReflector()
	b.serve()
	b.org("acme")
	b.org("other")
	b.project("web", "acme")
	b.project("shop", "nobody")
	b.apply(kinds.IAMServiceAccounts(), "robot", iamv1alpha1.ServiceAccountSpec{State: iamv1alpha1.Inactive})
	b.ready(kinds.Projects(), "web", belonging)
	b.ready(kinds.IAMServiceAccounts(), "robot", belonging)
	b.ready(kinds.Projects(), "shop", iamv1alpha1.ReferenceInvalid)

	projects := b.ResourceClient(kinds.Projects())
	web, err := projects.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[string]any{
		"type": iamv1alpha1.Ready, "status": "Unknown", "reason": "ProvisioningControlPlane", "message": "soon",
		"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": int64(2),
	}
	if err := unstructured.SetNestedSlice(web.Object, []any{theirs}, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	if _, err := projects.UpdateStatus(t.Context(), web, metav1.UpdateOptions{FieldManager: "theirs"}); err != nil {
		t.Fatal(err)
	}
	b.project("web", "other")
	b.org("nobody")
	b.ready(kinds.Projects(), "shop", belonging)
	testenv.Eventually(t, soon, func() error { // They say already what is to stand.
		if is := listed[resourcemanagerv1alpha1.Project](b, kinds.Projects())[1]; is.Status.Organization == nil || is.Status.Organization.Name != "other" {
			return fmt.Errorf("%s belongs to %v", is.Name, is.Status.Organization)
		}
		return nil
	})
	b.AwaitCaughtUp(topology.TupleSync)
	b.ready(kinds.Projects(), "web", "ProvisioningControlPlane")
}

func TestBindingOnUnobservedKindNeedsTrust(t *testing.T) {
	b := newIAMTestEnv(t)
	b.register("widget", "a.example/Widget", "widgets")
	b.remodel()
	b.StartReflector()
	r := b.serve()
	alice := b.user("alice")
	b.role("viewer", nil, "a.example/widgets.get")
	b.bind("one", "viewer", on("a.example/Widget", metav1.ObjectMeta{Name: "w", UID: "1"}), user(alice))
	b.ready(kinds.PolicyBindings(), "one", iamv1alpha1.ResourceSelectorValidationFailed)
	b.observed("widget", iamv1alpha1.NotFollowed)
	b.observed("project", iamv1alpha1.Followed)
	r.Stop()
	b.serve(func(c *tuplesync.Config) { c.UnobservedTargets = "trust" })
	b.ready(kinds.PolicyBindings(), "one", bound)
	b.observed("widget", iamv1alpha1.Trusted)
	if held := b.holds(b.id); !slices.ContainsFunc(held, func(t string) bool { return strings.HasPrefix(t, "a.example/Widget:w#b@") }) {
		t.Errorf("the store holds %v", held)
	}
}

// observed waits until a ProtectedResource says whether its objects are followed.
func (b *iamTestEnv) observed(name, reason string, words ...string) {
	b.T.Helper()
	testenv.AwaitObject(b.Env, kinds.ProtectedResources(), name, func(p *iamv1alpha1.ProtectedResource) error {
		if c := meta.FindStatusCondition(p.Status.Conditions, iamv1alpha1.Observed); c == nil || c.Reason != reason || !strings.Contains(c.Message, strings.Join(words, " ")) {
			return fmt.Errorf("%s says %+v, want %s, %q", name, c, reason, words)
		}
		return nil
	})
}

func TestRoleIsReadyAfterModelHasPermissions(t *testing.T) {
	b := newIAMTestEnv(t)
	b.StartReflector()
	b.serve()
	b.role("viewer", nil, getProject)
	b.ready(kinds.IAMRoles(), "viewer", bound)
	spec := iamv1alpha1.ProtectedResourceSpec{Plural: "projects", Singular: "project", Permissions: []string{"get", "update", "archive"}}
	spec.ServiceRef.Name, spec.Kind, _ = strings.Cut(projectType, "/")
	b.Kube.Apply(t, kinds.ProtectedResources(), "project", spec)
	b.role("viewer", nil, getProject, "resourcemanager.miloapis.com/projects.archive")
	b.AwaitNoCalls()
	var r iamv1alpha1.Role
	if err := b.Get(kinds.IAMRoles().InNamespace(ns), "viewer", &r); err != nil {
		t.Fatal(err)
	}
	if meta.IsStatusConditionTrue(r.Status.Conditions, iamv1alpha1.Ready) && r.Status.ObservedGeneration == r.Generation {
		t.Errorf("it says %+v", r.Status)
	}
	b.remodel()
	b.ready(kinds.IAMRoles(), "viewer", bound)
}
