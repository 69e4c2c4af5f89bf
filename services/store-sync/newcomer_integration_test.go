//go:build integration

package storesync_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/modeltest"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// newcomer is a user that may extend the Store demo, write modules, statuses, and the documents of one namespace.
const newcomer = "newcomer"

func (b *testEnv) admitNewcomer() {
	b.T.Helper()
	in := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	group := corev1alpha1.GroupVersion.Group
	extend := in(group, corev1alpha1.Stores, "extend")
	extend.ResourceNames = []string{"demo"}
	b.Kube.GrantUser(b.T, "", newcomer, extend, in(group, corev1alpha1.AuthorizationModels, "create", "patch", "delete"),
		in(group, corev1alpha1.Stores+"/status", "patch"), in(group, corev1alpha1.AuthorizationModels+"/status", "patch"))
	b.Kube.GrantUser(b.T, "default", newcomer, in(kinds.PolicyDocuments().Group, kinds.PolicyDocuments().Resource, "create", "patch", "delete"))
}

// createAsNewcomer creates a module of the Store demo once the newcomer's rights are in effect.
func (b *testEnv) createAsNewcomer(name, text string) {
	b.T.Helper()
	models := b.Kube.DynamicClientAs(b.T, newcomer).Resource(kinds.AuthorizationModels().GroupVersionResource())
	testenv.Eventually(b.T, soon, func() error {
		_, err := models.Create(b.T.Context(), written(name, text), metav1.CreateOptions{})
		return err
	})
}

func (b *testEnv) registerAsNewcomer(name, policy string) {
	b.T.Helper()
	documents := b.Kube.DynamicClientAs(b.T, newcomer).Resource(kinds.PolicyDocuments().GroupVersionResource())
	testenv.Eventually(b.T, soon, func() error { return b.registerBy(documents, name, "demo", policy) })
}

// expectRefusal patches an object as the newcomer until the API server refuses it for a reason.
func (b *testEnv) expectRefusal(kind kinds.Kind, name, patch, reason string, subresources ...string) {
	b.T.Helper()
	objects := b.Kube.DynamicClientAs(b.T, newcomer).Resource(kind.GroupVersionResource())
	testenv.Eventually(b.T, soon, func() error {
		_, err := objects.Patch(b.T.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
		switch {
		case err == nil:
			return errors.New("the API server accepts " + patch)
		case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), reason):
			return fmt.Errorf("%s: got %w, want %q", patch, err, reason)
		}
		return nil
	})
}

// relations reports which of the relations the model of the Store demo has.
func (b *testEnv) relations(names ...string) map[string]bool {
	b.T.Helper()
	latest, err := b.hand.ReadLatestModel(b.T.Context(), b.store("demo").Status.StoreID)
	if err != nil {
		b.T.Fatal(err)
	}
	has, all := map[string]bool{}, modeltest.ModelDefinitions(latest)
	for _, name := range names {
		_, has[name] = all[name]
	}
	return has
}

func TestInvalidSharedUnionDoesNotStopRevocation(t *testing.T) {
	const (
		union = "\nunions: [{name: both, resourceTypes: [{name: org}, {name: box}%s]}]"
		get   = "  - {actionName: y_get, typeName: both, conditions: [{roleBinding: {}}]}"
		more  = "  - {actionName: z_get, typeName: both, conditions: [{roleBinding: {}}]}"
		lb    = "\nactions: [{name: y_get}, {name: z_get}]\nactionBindings:\n"
	)
	b := newEnvWithLiveDocuments(t)
	b.admitNewcomer()
	b.registerAsNewcomer("owner", fmt.Sprintf(union, ""))
	b.document("lb", lb+get+"\n"+more)
	b.awaitDocument("lb", "Ready=True/Ready")
	b.registerAsNewcomer("owner", fmt.Sprintf(union, ", {name: nope}"))
	b.awaitDocument("owner", "Valid=False/Invalid")
	b.awaitDocument("lb", "Ready=True/Ready")
	b.document("lb", lb+get)
	b.awaitDocument("lb", "Ready=True/Ready")
	if has := b.relations("box#y_get", "box#z_get"); !has["box#y_get"] || has["box#z_get"] {
		t.Errorf("got %v, want box#y_get alone", has)
	}
}

func TestForgedRecordsDoNotRemoveTuples(t *testing.T) {
	b := newEnvWithLiveDocuments(t)
	b.admitNewcomer()
	b.applyStore("victim")
	id := b.await("victim", storeMerged).Status.StoreID
	b.applyModule("own", "demo", dsl("own"))
	b.awaitModule("own", partMerged)
	types, uid := b.types(), string(b.store("demo").UID)
	stores, models, record := kinds.Stores(), kinds.AuthorizationModels(), "the verb record"
	b.expectRefusal(stores, "demo", `{"status":{"storeId":"`+id+`"}}`, record, "status")
	b.expectRefusal(stores, "demo", `{"status":{"storeId":null}}`, record, "status")
	b.expectRefusal(stores, "victim", `{"status":{"authorizationModelId":"01JA"}}`, record, "status")
	b.expectRefusal(stores, "victim", `{"status":{"adopted":true}}`, record, "status")
	b.expectRefusal(stores, "demo", `{"status":{"live":null}}`, record, "status")
	b.expectRefusal(models, "own", `{"status":{"live":{"storeUID":"`+uid+`","generation":1,"model":"module own\ntype org\n"}}}`, record, "status")
	b.expectRefusal(models, "own", `{"status":{"managedTuples":[{"object":"org:o","relation":"x_get_role","user":"crew:c#subject"}]}}`, record, "status")
	b.expectRefusal(models, "own", `{"metadata":{"annotations":{"core.platform-mesh.io/resource":"secrets"}}}`, record)
	b.expectRefusal(models, "own", `{"spec":{"storeRef":{"name":"victim"}}}`, "the verb extend")
	b.expectRefusal(stores, "demo", `{"spec":{"coreModule":"typ"}}`, "cannot patch resource")
	b.AwaitNoCalls()
	if !b.may("user:ann", "x_get", "box:b") {
		t.Error("ann may not get the box")
	}
	if got := b.types(); fmt.Sprint(got) != fmt.Sprint(types) {
		t.Errorf("got types %v, want %v", got, types)
	}
	if s := b.store("victim"); s.Status.StoreID != id {
		t.Errorf("the victim has %q, want %q", s.Status.StoreID, id)
	}
}
