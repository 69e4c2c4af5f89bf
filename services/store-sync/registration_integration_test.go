//go:build integration

package storesync_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/gen/entail/policy/v1/policyv1connect"
	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// These are parts of one policy, each from another service.
const (
	tenantPart = `
resourceTypes:
  - {name: tenant, idPrefix: idntten, relationships: [{relation: parent, targetTypes: [{name: tenant}]}]}`
	projectPart = `
resourceTypes:
  - {name: project, idPrefix: entrprj, relationships: [{relation: parent, targetTypes: [{name: tenant}]}]}`
	balancerPart = `
resourceTypes:
  - {name: loadbalancer, idPrefix: loadbal, relationships: [{relation: owner, targetTypes: [{name: resourceowner}]}]}
unions:
  - {name: resourceowner, resourceTypes: [{name: tenant}, {name: project}]}
actions: [{name: loadbalancer_get}]
actionBindings:
  - actionName: loadbalancer_get
    typeName: loadbalancer
    conditions: [{roleBinding: {}}, {relationshipAction: {relation: owner, actionName: loadbalancer_get}}]
  - actionName: loadbalancer_get
    typeName: resourceowner
    conditions: [{roleBinding: {}}, {relationshipAction: {relation: parent, actionName: loadbalancer_get}}]`
)

// document registers a PolicyDocument with the Store demo.
func (b *testEnv) document(name, policy string) {
	b.T.Helper()
	b.register(name, "demo", policy)
}

// register applies a PolicyDocument in the namespace default.
func (b *testEnv) register(name, store, policy string) {
	b.T.Helper()
	if err := b.registerBy(b.ResourceClient(kinds.PolicyDocuments()), name, store, policy); err != nil {
		b.T.Fatal(err)
	}
}

// registerBy applies a PolicyDocument in the namespace default through a client.
func (b *testEnv) registerBy(documents dynamic.NamespaceableResourceInterface, name, store, policy string) error {
	b.T.Helper()
	text := fmt.Sprintf("apiVersion: iapl.infratographer.com/v1alpha1\nkind: PolicyDocument\nmetadata: {name: %s, namespace: default}\nspec:\n"+
		"  storeRef: {name: %s}%s\n", name, store, strings.ReplaceAll(policy, "\n", "\n  "))
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		b.T.Fatal(err)
	}
	force := true
	_, err = documents.Namespace("default").Patch(b.T.Context(), name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "test", Force: &force})
	return err
}

func (b *testEnv) awaitDocument(name string, want ...string) *iaplv1alpha1.PolicyDocument {
	b.T.Helper()
	return testenv.AwaitObject(b.Env, kinds.PolicyDocuments().InNamespace("default"), name, func(d *iaplv1alpha1.PolicyDocument) error {
		return withoutRight(d.Status.Conditions, d.Generation, want)
	})
}

func (b *testEnv) withdraw(name string) {
	b.T.Helper()
	b.Delete(kinds.PolicyDocuments().InNamespace("default"), name)
}

// models returns the existing AuthorizationModels.
func (b *testEnv) models() []unstructured.Unstructured {
	b.T.Helper()
	return b.List(kinds.AuthorizationModels()).Items
}

func TestPolicyDocumentsFormPolicy(t *testing.T) {
	b := newTestEnv(t)
	running := b.serve()
	b.StartReflector()
	b.applyStore("demo")
	b.await("demo", "ModelSynced=True/Merged")

	// The worst order: each document comes before the documents that it needs.
	b.document("balancer", balancerPart)
	b.awaitDocument("balancer", "Valid=False/Invalid", "Merged=False/Invalid", "Ready=False/Invalid")
	b.document("project", projectPart)
	refused := b.awaitDocument("project", "Valid=False/Invalid")
	if f := refused.Status.Findings; len(f) != 1 || f[0].Code != "E-UNKNOWN-TYPE" || f[0].Path != "spec.resourceTypes[0].relationships[0].targetTypes[0]" || f[0].Hint == "" {
		t.Errorf("findings are %+v", f)
	}
	b.expectTypes("user", "document")
	b.document("tenant", tenantPart)
	for _, name := range []string{"balancer", "project", "tenant"} {
		d := b.awaitDocument(name, "Valid=True/Valid", "Merged=True/Merged", "Ready=True/Ready")
		if len(d.Status.Findings) > 0 || d.Status.AuthorizationModel == "" {
			t.Errorf("%s: status is %+v", name, d.Status)
		}
	}
	whole := []string{"user", "document", "role", "tenant", "project", "loadbalancer"}
	b.expectTypes(whole...)
	s := b.await("demo", "ModelSynced=True/Merged")
	if !slices.ContainsFunc(s.Status.Modules, func(m corev1alpha1.ModuleStatus) bool {
		return m.Source == "policydocument/default/balancer" && m.Name == "default_balancer"
	}) {
		t.Errorf("modules are %+v", s.Status.Modules)
	}
	b.decide()

	t.Run("another that conflicts is refused alone", func(t *testing.T) {
		b.document("aaa", tenantPart)
		d := b.awaitDocument("aaa", "Valid=False/Invalid", "Merged=False/Invalid")
		if f := d.Status.Findings; !slices.ContainsFunc(f, func(f iaplv1alpha1.Finding) bool {
			return f.Code == "E-DUP-TYPE" && strings.Contains(f.Message, "PolicyDocument default/tenant")
		}) {
			t.Errorf("findings are %+v", f)
		}
		for _, name := range []string{"balancer", "project", "tenant"} {
			b.awaitDocument(name, "Ready=True/Ready")
		}
		b.expectTypes(whole...)
		b.withdraw("aaa")
	})
	t.Run("an edit that is wrong leaves what was valid", func(*testing.T) {
		b.document("balancer", strings.ReplaceAll(balancerPart, "relation: parent", "relation: nowhere"))
		b.awaitDocument("balancer", "Valid=False/Invalid", "Merged=True/Merged", "Ready=False/Invalid")
		b.decide()
		b.document("balancer", balancerPart)
		b.awaitDocument("balancer", "Ready=True/Ready")
	})
	t.Run("PolicyService knows what is registered", func(t *testing.T) {
		client := policyv1connect.NewPolicyServiceClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, running.URL)
		registered := &policyv1.Policy{Source: &policyv1.Policy_Store{Store: "demo"}}
		got, err := client.CompilePolicy(t.Context(), &policyv1.CompilePolicyRequest{Policy: registered, Target: policyv1.Target_TARGET_OPENFGA_MODULES})
		if err != nil || !slices.ContainsFunc(got.GetArtifacts(), func(a *policyv1.Artifact) bool { return a.GetName() == "default_balancer.fga" }) {
			t.Errorf("compiled are %v, %v", got, err)
		}
		registered.Source = &policyv1.Policy_Store{Store: "none"}
		if _, err := client.CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: registered}); connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("of a Store that does not exist: %v", err)
		}
		for name, p := range map[string]*policyv1.Policy{
			"none": nil, "no source": {}, "no files": {Source: &policyv1.Policy_Files{Files: &policyv1.Files{}}},
			"two files of one name":   {Source: &policyv1.Policy_Files{Files: &policyv1.Files{Files: []*policyv1.File{{Name: "a"}, {Name: "a"}}}}},
			"a name that is too long": {Source: &policyv1.Policy_Store{Store: strings.Repeat("a", 254)}},
		} {
			if _, err := client.CheckPolicy(t.Context(), &policyv1.CheckPolicyRequest{Policy: p}); connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("a policy with %s: %v, want InvalidArgument", name, err)
			}
		}
		_, err = client.CompilePolicy(t.Context(), &policyv1.CompilePolicyRequest{Policy: &policyv1.Policy{Source: &policyv1.Policy_Store{Store: "demo"}}})
		if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "choose TARGET_SPICEDB") {
			t.Errorf("no target: %v", err)
		}
		b.tellBefore(client, clientOf(running))
	})
	t.Run("a deletion acts though others need the document", func(*testing.T) {
		running.Stop() // It is deleted while store-sync does not run.
		b.withdraw("tenant")
		b.serve()
		b.awaitDocument("project", "Valid=False/Invalid", "Merged=True/Merged")
		b.awaitDocument("balancer", "Valid=False/Invalid", "Merged=True/Merged")
		b.awaitTypes("-tenant", "project", "loadbalancer", "role")
		b.document("tenant", tenantPart)
		for _, name := range []string{"balancer", "project", "tenant"} {
			b.awaitDocument(name, "Ready=True/Ready")
		}
		b.decide()
	})
	t.Run("nothing is left to do", func(t *testing.T) {
		b.AwaitNoCalls()
		openFGA, kube := b.since()
		b.RequestResync(topology.StoreSync)
		b.AwaitNoCalls()
		if calls := openFGA(); calls["Write"]+calls["WriteAuthorizationModel"]+calls["CreateStore"] > 0 || kube() > 0 {
			t.Errorf("a resync writes: %v, %d to the API server", calls, kube())
		}
	})
	t.Run("what nobody needs goes", func(t *testing.T) {
		for _, name := range []string{"balancer", "project", "tenant"} {
			b.withdraw(name)
		}
		testenv.Eventually(t, soon, func() error {
			if left := b.models(); len(left) > 0 {
				return fmt.Errorf("%d AuthorizationModels are left", len(left))
			}
			return nil
		})
		b.awaitTypes("user", "document", "-tenant", "-project", "-loadbalancer", "-role")
	})
}

// decide checks the decisions of OpenFGA by the registered policy.
func (b *testEnv) decide() {
	b.T.Helper()
	id := b.store("demo").Status.StoreID
	tuples := []*openfgav1.TupleKey{
		{Object: "role:viewers", Relation: "subject", User: "user:ann"},
		{Object: "tenant:t", Relation: "loadbalancer_get_role", User: "role:viewers#subject"},
		{Object: "project:p", Relation: "parent", User: "tenant:t"},
		{Object: "loadbalancer:l", Relation: "owner", User: "project:p"},
	}
	if err := b.hand.Write(b.T.Context(), id, "", tuples, nil); err != nil {
		b.T.Fatal(err)
	}
	if !b.may("user:ann", "loadbalancer_get", "loadbalancer:l") {
		b.T.Error("ann may not get the load balancer")
	}
	if b.may("user:bob", "loadbalancer_get", "loadbalancer:l") {
		b.T.Error("bob may get the load balancer")
	}
}

// tellBefore previews a document, and verifies that the preview comes true.
func (b *testEnv) tellBefore(policies policyv1connect.PolicyServiceClient, stores storev1connect.StoreServiceClient) {
	b.T.Helper()
	const part = `
resourceTypes:
  - {name: volume, idPrefix: storvol, relationships: [{relation: owner, targetTypes: [{name: resourceowner}]}]}`
	files := documents(part)
	beside := &policyv1.Policy{Source: &policyv1.Policy_Files{Files: files}, Beside: "demo"}
	if got, err := policies.CheckPolicy(b.T.Context(), &policyv1.CheckPolicyRequest{Policy: beside}); err != nil || !got.GetOk() {
		b.T.Errorf("checked: %v, %v", got, err)
	}
	diff, err := policies.DiffPolicies(b.T.Context(), &policyv1.DiffPoliciesRequest{Old: &policyv1.Policy{Source: &policyv1.Policy_Store{Store: "demo"}}, New: beside})
	if err != nil || diff.GetWorst() != policyv1.Class_CLASS_HARMLESS {
		b.T.Errorf("compared: %v, %v", diff, err)
	}
	got, err := stores.PreviewModel(b.T.Context(), &storev1.PreviewModelRequest{Name: "demo", Documents: files})
	if err != nil || !got.GetAccepted() || !slices.Equal(changeKinds(got.GetChanges()), []string{"ADDED volume", "ADDED volume#owner"}) {
		b.T.Errorf("previewed: %v, %v", got, err)
	}
	b.document("volume", part)
	b.awaitDocument("volume", "Ready=True/Ready")
	live := func(want bool) error {
		is, err := stores.GetModel(b.T.Context(), &storev1.GetModelRequest{Name: "demo"})
		if err == nil && strings.Contains(is.GetDsl(), "type volume") != want {
			err = fmt.Errorf("the model is %s", is.GetDsl())
		}
		return err
	}
	if err := live(true); err != nil {
		b.T.Error(err)
	}
	b.withdraw("volume")
	testenv.Eventually(b.T, soon, func() error { return live(false) })
}

func TestDocumentWithoutStoreIsReported(t *testing.T) {
	b := newTestEnv(t)
	b.serve()
	b.StartReflector()
	b.document("tenant", tenantPart)
	b.awaitDocument("tenant", "Valid=True/Valid", "Merged=False/StoreNotFound", "Ready=False/StoreNotFound")
	b.applyStore("demo")
	b.awaitDocument("tenant", "Ready=True/Ready")
	b.Delete(kinds.Stores(), "demo")
	b.await("demo", "Deleting=True/Blocked")
	b.withdraw("tenant")
	testenv.Eventually(t, soon, func() error {
		if _, err := b.ResourceClient(kinds.Stores()).Get(t.Context(), "demo", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Store is there (%w)", err)
		}
		return nil
	})
}
