//go:build integration

package storesync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	storesync "github.com/entail-dev/entail/services/store-sync"
)

// accounts is a core module that generated modules build on.
const accounts = `module core

type user

type role
  relations
    define assignee: [user, user:*]

type core_platform-mesh_io_account
  relations
    define parent: [core_platform-mesh_io_account]
    define owner: [role#assignee] or owner from parent
    define member: [role#assignee] or owner or member from parent
`

func withAccounts(s *corev1alpha1.StoreSpec) { s.CoreModule = accounts }

func ordinary(groupVersions ...string) func(*storesync.Config) {
	return func(c *storesync.Config) { c.Discovery.Ordinary = groupVersions }
}

// unprivileged turns off the discovery of privileged groups.
func unprivileged(c *storesync.Config) { c.Discovery.Privileged = nil }

// definition is a CustomResourceDefinition of a cluster-scoped resource.
type definition struct{ group, plural, kind, version, store string }

func widgets(group, store string) definition {
	return definition{group, "widgets", "Widget", "v1alpha1", store}
}

func (d definition) name() string { return d.plural + "." + d.group }

// served returns the kind that d defines.
func (d definition) served() kinds.Kind {
	return kinds.Kind{GroupResource: event.GroupResource{Group: d.group, Resource: d.plural}, Version: d.version, Kind: d.kind}
}

// define applies definitions, and deletes them when the test ends.
func (b *testEnv) define(definitions ...definition) {
	b.T.Helper()
	for _, d := range definitions {
		b.T.Cleanup(func() { b.Kube.DeleteCRD(b.T, d.name()) })
		labels := map[string]any{}
		if d.store != "" {
			labels[corev1alpha1.StoreNameLabel] = d.store
		}
		b.apply(kinds.CustomResourceDefinitions(), d.name(), testenv.CRDFields(d.served(), labels))
	}
}

// apply applies an object as soon as its kind is served.
func (b *testEnv) apply(kind kinds.Kind, name string, fields map[string]any) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		_, err := b.Kube.ApplyFields(b.T, kind, name, fields)
		if err != nil && !apierrors.IsNotFound(err) {
			b.T.Fatal(err)
		}
		return err
	})
}

// awaitTypes waits until the live model has these types, and lacks those with a minus in front.
func (b *testEnv) awaitTypes(want ...string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		types := b.types()
		for _, w := range want {
			name, unwanted := strings.CutPrefix(w, "-")
			if slices.Contains(types, name) == unwanted {
				return fmt.Errorf("types are %v, want %v", types, want)
			}
		}
		return nil
	})
}

// may returns OpenFGA's answer to a check.
func (b *testEnv) may(user, relation, object string) bool {
	b.T.Helper()
	answer, err := b.hand.Check(b.T.Context(), &openfgav1.CheckRequest{
		StoreId: b.store("demo").Status.StoreID, TupleKey: &openfgav1.CheckRequestTupleKey{User: user, Relation: relation, Object: object},
	})
	if err != nil {
		b.T.Fatal(err)
	}
	return answer.GetAllowed()
}

func TestDiscoveredModulesGrantMembersAndOwners(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve(ordinary("v1", "apps/v1", "absent.example.com/v1"))
	b.applyStore("demo", withAccounts)
	s := b.await("demo", "ModelSynced=True/Merged")
	const (
		account   = "core_platform-mesh_io_account:local/acme"
		namespace = "core_namespace:local/shop"
		deploy    = "apps_deployment:local/web"
		binding   = "rbac_authorization_k8s_io_rolebinding:local/admins"
	)
	var tuples []*openfgav1.TupleKey
	for _, tuple := range [][3]string{
		{"user:anne", "assignee", "role:owners"},
		{"user:beth", "assignee", "role:members"},
		{"role:owners#assignee", "owner", account},
		{"role:members#assignee", "member", account},
		{account, "parent", namespace},
		{namespace, "parent", deploy},
		{namespace, "parent", binding},
	} {
		tuples = append(tuples, &openfgav1.TupleKey{User: tuple[0], Relation: tuple[1], Object: tuple[2]})
	}
	if err := b.hand.Write(t.Context(), s.Status.StoreID, s.Status.AuthorizationModelID, tuples, nil); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		relation, object     string
		owner, member, other bool
	}{
		{"get", namespace, true, true, false},
		{"list_core_namespaces", account, true, true, false},
		{"create_core_namespaces", account, true, false, false},
		{"get", deploy, true, true, false},
		{"update", deploy, true, true, false},
		{"create_apps_deployments", namespace, true, false, false},
		{"get", binding, true, true, false},
		{"update", binding, true, false, false},
		{"bind", binding, true, false, false},
		{"escalate", binding, true, false, false},
		// Authorizers cut the name in the same way.
		{"create_ac_authorization_k8s_io_clusterrolebindings", account, true, false, false},
		{"manage_iam_roles", deploy, true, false, false},
		{"get_iam_users", deploy, true, true, false},
	} {
		for user, want := range map[string]bool{"anne": test.owner, "beth": test.member, "carl": test.other} {
			if got := b.may("user:"+user, test.relation, test.object); got != want {
				t.Errorf("%s has %s on %s: %t", user, test.relation, test.object, got)
			}
		}
	}
	var sources []string
	for _, m := range s.Status.Modules {
		sources = append(sources, m.Source)
	}
	if !slices.Contains(sources, "discovered/namespaces") || !slices.Contains(sources, "discovered/apps/deployments") ||
		slices.ContainsFunc(sources, func(s string) bool { return strings.HasSuffix(s, "/status") }) {
		t.Errorf("status.modules has %v", sources)
	}
}

func TestDiscoveryRefreshesAfterDefinitionChangesOnly(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve(ordinary("ui.platform-mesh.io/v1alpha1"), unprivileged)
	b.applyStore("demo", withAccounts)
	b.await("demo", "ModelSynced=True/Merged")
	b.AwaitCaughtUp(topology.StoreSync) // AwaitNoCalls does not wait for reads.
	b.AwaitNoCalls()
	asked := b.Kube.CallsByOp()
	b.RequestResync(topology.StoreSync)
	b.applyModule("docs", "demo", dsl("folder"))
	b.awaitModule("docs", "Merged=True/Merged")
	b.define(widgets("example.com", ""))
	b.AwaitNoCalls()
	for op, n := range b.Kube.CallsByOp() {
		if strings.HasPrefix(op, "GET /api") && n != asked[op] {
			t.Errorf("%s was asked %d times although nothing it serves has changed", op, n-asked[op])
		}
	}
	page := definition{"ui.platform-mesh.io", "pages", "Page", "v1alpha1", ""}
	b.define(page)
	b.awaitTypes("ui_platform-mesh_io_page")
	b.Delete(kinds.CustomResourceDefinitions(), page.name())
	b.awaitTypes("-ui_platform-mesh_io_page")
	b.define(page)
	b.awaitTypes("ui_platform-mesh_io_page")
}

func TestLabeledDefinitionIsInModel(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve(ordinary(), unprivileged)
	b.applyStore("demo", withAccounts)
	b.applyStore("other", withAccounts)
	b.define(widgets("example.com", "demo"))
	m := b.awaitModule("widgets-demo", "Merged=True/Merged")
	if m.Spec.StoreRef != (corev1alpha1.StoreRef{Name: "demo"}) || !strings.HasPrefix(m.Spec.Model, "module widgets\n") {
		t.Errorf("made is %+v", m.Spec)
	}
	b.awaitTypes("example_com_widget")
	tuple := corev1alpha1.Tuple{User: "user:anne", Relation: "member", Object: "core_platform-mesh_io_account:local/acme"}
	b.apply(kinds.AuthorizationModels(), "widgets-demo", map[string]any{"spec": map[string]any{"tuples": []any{
		map[string]any{"user": tuple.User, "relation": tuple.Relation, "object": tuple.Object},
	}}})
	b.apply(kinds.AuthorizationModels(), "widgets-demo", map[string]any{"spec": map[string]any{
		"model": "module edited\n", "storeRef": map[string]any{"name": "demo"},
		"tuples": []any{map[string]any{"user": tuple.User, "relation": tuple.Relation, "object": tuple.Object}},
	}})
	testenv.Eventually(t, soon, func() error {
		var m corev1alpha1.AuthorizationModel
		err := b.Get(kinds.AuthorizationModels(), "widgets-demo", &m)
		if err == nil && (!strings.HasPrefix(m.Spec.Model, "module widgets\n") || len(m.Spec.Tuples) != 1) {
			err = fmt.Errorf("it has %+v", m.Spec)
		}
		return err
	})
	b.AwaitNoCalls()
	b.CheckNoWrites("a resync", func() { b.RequestResync(topology.StoreSync) })

	b.define(widgets("example.com", "other"))
	b.AwaitGone(kinds.AuthorizationModels(), "widgets-demo")
	b.awaitModule("widgets-other", "Merged=True/Merged")
	b.define(widgets("example.com", "demo"), widgets("example.org", "demo"))
	b.awaitModule("widgets-demo", "Merged=True/Merged")
	b.awaitModule("widgets.example.org-demo", "Merged=True/Merged")
	b.awaitTypes("example_com_widget", "example_org_widget")
	b.AwaitGone(kinds.AuthorizationModels(), "widgets-other")
	b.define(widgets("example.com", ""))
	b.Delete(kinds.CustomResourceDefinitions(), "widgets.example.org")
	b.AwaitGone(kinds.AuthorizationModels(), "widgets-demo")
	b.AwaitGone(kinds.AuthorizationModels(), "widgets.example.org-demo")
	b.awaitTypes("-example_com_widget", "-example_org_widget")
}

func TestDeletingStoreDoesNotGetModules(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve(ordinary(), unprivileged)
	b.applyStore("demo", withAccounts)
	b.define(widgets("example.com", "demo"))
	b.awaitModule("widgets-demo", "Merged=True/Merged")
	b.Delete(kinds.Stores(), "demo")
	b.await("demo", "Deleting=True/Blocked")
	b.Delete(kinds.AuthorizationModels(), "widgets-demo")
	b.AwaitGone(kinds.Stores(), "demo")
	b.AwaitNoCalls() // The label of the definition still names the Store.
	b.AwaitGone(kinds.AuthorizationModels(), "widgets-demo")
}

func failing(operation string) testenv.Fault {
	err := errors.New("broken on purpose")
	return func(_ context.Context, op string) error {
		if op == operation {
			return err
		}
		return nil
	}
}
