//go:build integration

package opensearchsync_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// forget is the annotation that drops the record of an object.
const forget = "entail.dev/forget-server"

// three creates one object of each of three kinds, and returns the kinds by name.
func (b *testEnv) three() map[string]kinds.Kind {
	b.T.Helper()
	b.user("anna")
	b.role("watchers")
	b.bind("one", "watchers", "anna")
	all := map[string]kinds.Kind{"anna": kinds.OpenSearchUsers(), "watchers": kinds.OpenSearchRoles(), "one": kinds.OpenSearchBindings()}
	for name, kind := range all {
		b.state(kind, name, "CREATED", "")
	}
	return all
}

// server returns the UUID of the OpenSearch.
func (b *testEnv) server() string {
	b.T.Helper()
	var is struct {
		UUID string `json:"cluster_uuid"`
	}
	if _, data := b.search.RequestAsAdmin(b.T, http.MethodGet, "/", nil); json.Unmarshal(data, &is) != nil || is.UUID == "" {
		b.T.Fatalf("OpenSearch answers %s", data)
	}
	return is.UUID
}

// madeIn waits until an object is in step, with the present cluster in its record.
func (b *testEnv) madeIn(kind kinds.Kind, name string) {
	b.T.Helper()
	uid := b.get(kinds.OpenSearchClusters(), cluster).GetUID()
	testenv.AwaitObject(b.Env, kind.InNamespace(namespace), name, func(o *objectWithCommonStatus) error {
		if o.Status.State != "CREATED" || o.Status.ManagedCluster != string(uid) {
			return fmt.Errorf("%s is %s: %q, in %q, want CREATED in %q", name, o.Status.State, o.Status.Reason, o.Status.ManagedCluster, uid)
		}
		return nil
	})
}

// held waits until the status of a deleted object reports why it is held.
func (b *testEnv) held(kind kinds.Kind, name, text string) {
	b.T.Helper()
	testenv.AwaitObject(b.Env, kind.InNamespace(namespace), name, func(o *objectWithCommonStatus) error {
		if o.DeletionTimestamp == nil || len(o.Finalizers) == 0 || !strings.Contains(o.Status.Reason, text) {
			return fmt.Errorf("%s is held by %v and says %q, want %q", name, o.Finalizers, o.Status.Reason, text)
		}
		return nil
	})
}

// A regression test: objects that were deleted during a cleanup run were released although their entities remained.
func TestObjectsDeletedAfterTheirClusterAreRemoved(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	const count = 6
	for i := range count {
		b.role(fmt.Sprint("role-", i))
		b.bind(fmt.Sprint("binding-", i), fmt.Sprint("role-", i), "anna")
	}
	for i := range count {
		b.state(kinds.OpenSearchBindings(), fmt.Sprint("binding-", i), "CREATED", "")
	}
	b.remove(kinds.OpenSearchClusters(), cluster)
	for i := range count {
		b.Delete(kinds.OpenSearchRoles().InNamespace(namespace), fmt.Sprint("role-", i))
		b.Delete(kinds.OpenSearchBindings().InNamespace(namespace), fmt.Sprint("binding-", i))
	}
	for i := range count {
		b.AwaitGone(kinds.OpenSearchRoles().InNamespace(namespace), fmt.Sprint("role-", i))
		b.AwaitGone(kinds.OpenSearchBindings().InNamespace(namespace), fmt.Sprint("binding-", i))
	}
	is := b.listed("roles") + b.listed("rolesmapping")
	for i := range count {
		if strings.Contains(is, fmt.Sprintf(`"role-%d":`, i)) {
			t.Errorf("role-%d, or its mapping, is left", i)
		}
	}
}

// unrecord removes the copy of an object's record.
func (b *testEnv) unrecord(kind kinds.Kind, name string) {
	b.T.Helper()
	patch := []byte(`{"metadata":{"annotations":{"entail.dev/opensearch-record":null}}}`)
	if _, err := b.Kube.DynamicClient(b.T).Resource(kind.GroupVersionResource()).Namespace(namespace).Patch(b.T.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		b.T.Fatal(err)
	}
}

// A replica that never had the connection opens it from the last state of the cluster, while the Secret is readable.
func TestRestartCleansUpDeletedCluster(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	running := b.serve()
	all := b.three()
	b.bind("a-binding", "watchers", "ben")
	b.state(kinds.OpenSearchBindings(), "a-binding", "CREATED", "")
	running.Stop()
	b.remove(kinds.OpenSearchClusters(), cluster)
	for _, name := range []string{"a-binding", "one"} { // Records of other objects suffice, of other kinds too.
		b.unrecord(kinds.OpenSearchBindings(), name)
	}
	b.Delete(kinds.OpenSearchBindings().InNamespace(namespace), "a-binding")
	b.Delete(kinds.OpenSearchBindings().InNamespace(namespace), "one")
	running = b.serve()
	b.AwaitGone(kinds.OpenSearchBindings().InNamespace(namespace), "a-binding")
	b.AwaitGone(kinds.OpenSearchBindings().InNamespace(namespace), "one")
	b.absent("rolesmapping/watchers")
	running.Stop()

	secrets := b.core.CoreV1().Secrets(namespace)
	if err := secrets.Delete(context.WithoutCancel(t.Context()), "connection", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.Delete(kinds.OpenSearchUsers().InNamespace(namespace), "anna")
	b.Delete(kinds.OpenSearchRoles().InNamespace(namespace), "watchers")
	b.serve()
	b.held(kinds.OpenSearchUsers(), "anna", "was deleted, and OpenSearch "+b.server()+" still holds")
	b.held(kinds.OpenSearchRoles(), "watchers", "there is no such Secret")
	b.login("anna", first, http.StatusOK)
	b.annotate(kinds.OpenSearchRoles(), "watchers", forget, b.server())
	b.AwaitGone(kinds.OpenSearchRoles().InNamespace(namespace), "watchers")
	if status, _ := b.search.RequestAsAdmin(t, http.MethodGet, "/_plugins/_security/api/roles/watchers", nil); status != http.StatusOK {
		t.Errorf("the role that was to be left there gets %d", status)
	}

	certificate, key := b.search.AdminCertificate()
	b.secret("connection", map[string]string{
		"url": b.search.URL(), "ca.crt": string(b.search.CA()), "tls.crt": string(certificate), "tls.key": string(key),
	})
	b.connect() // The cluster object leads to the same server.
	b.AwaitGone(all["anna"].InNamespace(namespace), "anna")
	b.login("anna", first, http.StatusUnauthorized)
}

// A cluster object may lead to another server now. Nothing is written for objects that were made on the first one, and
// none is released.
func TestObjectsOfOtherServerAreKept(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.write("roles/theirs", map[string]any{"cluster_permissions": []string{"cluster_all"}})
	b.write("rolesmapping/theirs", map[string]any{"users": []string{"kim"}})
	b.connect()
	b.role("theirs")
	b.bind("one", "theirs", "kim", "ben")
	uid := b.get(kinds.OpenSearchClusters(), cluster).GetUID()
	for name, of := range map[string]struct {
		kind   kinds.Kind
		status map[string]any
	}{
		"theirs": {kinds.OpenSearchRoles(), map[string]any{"existingRole": false}},
		"one":    {kinds.OpenSearchBindings(), map[string]any{"provisioned": []any{map[string]any{"role": "theirs", "users": []any{"kim"}}}}},
	} {
		of.status["state"], of.status["managedCluster"], of.status["managedServer"] = "CREATED", uid, "elsewhere"
		patch, err := json.Marshal(map[string]any{"status": of.status})
		if err != nil {
			t.Fatal(err)
		}
		b.Patch(of.kind.InNamespace(namespace), name, string(patch), "status")
		b.SetFinalizers(of.kind, namespace, name, "opensearch.org/opensearch-data")
	}
	b.serve()
	b.state(kinds.OpenSearchRoles(), "theirs", "ERROR", "was created on elsewhere")
	b.state(kinds.OpenSearchBindings(), "one", "ERROR", "leads to OpenSearch "+b.server())
	b.Delete(kinds.OpenSearchBindings().InNamespace(namespace), "one")
	b.held(kinds.OpenSearchBindings(), "one", "annotate the object with "+forget+"=elsewhere")
	b.annotate(kinds.OpenSearchBindings(), "one", forget, "elsewhere")
	b.AwaitGone(kinds.OpenSearchBindings().InNamespace(namespace), "one")
	b.mappedTo("theirs", "kim")
	b.annotate(kinds.OpenSearchRoles(), "theirs", forget, "elsewhere")
	b.state(kinds.OpenSearchRoles(), "theirs", "IGNORED", "exists in OpenSearch already")
	b.remove(kinds.OpenSearchRoles(), "theirs")
	if is := b.listed("roles/theirs"); !strings.Contains(is, "cluster_all") {
		t.Errorf("the role of others is now %s", is)
	}
}

// The annotation affects its own object only, and takes effect when that is deleted.
func TestForgetAnnotationAffectsItsObjectOnly(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	all := b.three()
	b.user("ben")
	b.state(kinds.OpenSearchUsers(), "ben", "CREATED", "")
	for name, kind := range all {
		b.annotate(kind, name, forget, b.server())
		b.state(kind, name, "ERROR", "remove the annotation, or delete the object")
	}
	b.put(kinds.OpenSearchUsers(), "ben", spec(map[string]any{
		"passwordFrom": map[string]any{"name": "passwords", "key": "ben"}, "backendRoles": []any{"dev"},
	}))
	b.put(kinds.OpenSearchRoles(), "other", spec(map[string]any{"clusterPermissions": []any{"cluster_monitor"}}))
	b.bind("two", "other", "anna")
	b.state(kinds.OpenSearchUsers(), "ben", "CREATED", "")
	b.state(kinds.OpenSearchRoles(), "other", "CREATED", "")
	b.state(kinds.OpenSearchBindings(), "two", "CREATED", "")
	if is := b.listed("internalusers/ben"); !strings.Contains(is, "dev") {
		t.Errorf("got %s, want the backend role", is)
	}
	b.annotate(kinds.OpenSearchRoles(), "watchers", forget, "")
	b.state(kinds.OpenSearchRoles(), "watchers", "CREATED", "") // The record counts again.
	b.remove(kinds.OpenSearchUsers(), "anna", "ben")
	b.remove(kinds.OpenSearchBindings(), "one", "two")
	b.mappedTo("watchers", "anna") // Because of the annotation, the deletion left the entry.
	b.login("anna", first, http.StatusOK)
	b.remove(kinds.OpenSearchRoles(), "watchers", "other")
	b.absent("roles/watchers")
}

// The right to write objects does not include the right to forge or drop records.
func TestRecordChangesRequireVerbRecord(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	b.role("watchers")
	b.state(kinds.OpenSearchRoles(), "watchers", "CREATED", "")
	role := kinds.OpenSearchRoles()
	b.Kube.GrantUser(t, namespace, "alice", rbacv1.PolicyRule{
		APIGroups: []string{role.Group}, Resources: []string{role.Resource}, Verbs: []string{"get", "create", "update", "patch", "delete"},
	})
	as := b.Kube.DynamicClientAs(t, "alice").Resource(role.GroupVersionResource()).Namespace(namespace)
	annotate := func(name, value string) error {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, name, value)
		_, err := as.Patch(t.Context(), "watchers", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	for name, value := range map[string]string{forget: b.server(), "entail.dev/opensearch-record": `{"uid":"x"}`} {
		testenv.Eventually(t, soon, func() error {
			if err := annotate(name, value); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "need the verb record") {
				return fmt.Errorf("annotation %s gets %w, want forbidden by its policy", name, err)
			}
			return nil
		})
	}
	if err := annotate("note", "hers"); err != nil {
		t.Errorf("another annotation gets %v", err)
	}
	removal := []byte(`{"metadata":{"annotations":{"entail.dev/opensearch-record":null}}}`)
	if _, err := as.Patch(t.Context(), "watchers", types.MergePatchType, removal, metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the removal of a record gets %v, want forbidden", err)
	}
	made := b.get(role, "watchers")
	again := &unstructured.Unstructured{Object: map[string]any{"apiVersion": made.GetAPIVersion(), "kind": made.GetKind(), "spec": made.Object["spec"]}}
	again.SetName("copied")
	again.SetAnnotations(map[string]string{"entail.dev/opensearch-record": made.GetAnnotations()["entail.dev/opensearch-record"]})
	_ = unstructured.SetNestedField(again.Object, "free", "spec", "name")
	if _, err := as.Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
		t.Errorf("a copy of a manifest with its record gets %v", err)
	}
	b.state(role, "copied", "CREATED", "")
	b.remove(role, "copied")
	b.remove(role, "watchers")
	b.absent("roles/watchers")
}

// prune makes the definition of a kind drop the fields that the public operator's lacks. The returned function restores
// it.
func (b *testEnv) prune(kind kinds.Kind) (restore func()) {
	b.T.Helper()
	definitions := b.ResourceClient(kinds.CustomResourceDefinitions())
	name := kind.Resource + "." + kind.Group
	var whole any
	edit := func(change func(status map[string]any)) {
		b.T.Helper()
		ctx := context.WithoutCancel(b.T.Context())
		testenv.Eventually(b.T, soon, func() error {
			o, err := definitions.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
			version, _ := versions[0].(map[string]any)
			status, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "status", "properties")
			if whole == nil {
				whole = status
			}
			status, _, _ = unstructured.NestedMap(map[string]any{"is": whole}, "is")
			change(status)
			if err := unstructured.SetNestedMap(version, status, "schema", "openAPIV3Schema", "properties", "status", "properties"); err != nil {
				return err
			}
			if err := unstructured.SetNestedSlice(o.Object, versions, "spec", "versions"); err != nil {
				return err
			}
			_, err = definitions.Update(ctx, o, metav1.UpdateOptions{})
			return err
		})
	}
	edit(func(status map[string]any) {
		for _, field := range []string{"conditions", "managedServer", "observedGeneration", "provisioned"} {
			delete(status, field)
		}
	})
	restore = func() { edit(func(map[string]any) {}) }
	b.T.Cleanup(restore)
	return restore
}

// The public operator's chart may replace Entail's definitions. Revoked entries must be removed even then, and the
// status must report the cause.
func TestRevocationWorksWithForeignDefinitions(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	running := b.serve()
	b.write("roles/hr", map[string]any{"cluster_permissions": []string{"cluster_monitor"}})
	b.bind("one", "hr", "anna")
	b.bind("two", "hr", "ben")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
	b.state(kinds.OpenSearchBindings(), "two", "CREATED", "")
	bindings := kinds.OpenSearchBindings()
	restore := b.prune(bindings)
	testenv.Eventually(t, soon, func() error { // Until the API server serves the changed definition.
		b.annotate(bindings, "two", "look", fmt.Sprint(len(b.log.Bytes())))
		if status, _ := b.get(bindings, "two").Object["status"].(map[string]any); status["managedServer"] != nil {
			return fmt.Errorf("the status still is %v", status)
		}
		return nil
	})
	b.bind("one", "hr", "lee")
	b.mappedTo("hr", "lee", "ben")
	testenv.AwaitObject(b.Env, bindings.InNamespace(namespace), "one", func(o *objectWithCommonStatus) error {
		if o.Status.State != "CREATED" || !strings.Contains(o.Status.Reason, "installCRDs: false") {
			return fmt.Errorf("the binding is %s: %q", o.Status.State, o.Status.Reason)
		}
		return nil
	})
	b.warned("one", "ForeignDefinition", "installCRDs: false")
	b.unready(running, "definitions: opensearchuserrolebindings.opensearch.org")
	b.remove(bindings, "two")
	b.mappedTo("hr", "lee")

	restore()
	testenv.Eventually(t, soon, func() error {
		b.annotate(kinds.OpenSearchClusters(), cluster, "look", fmt.Sprint(len(b.log.Bytes())))
		if status, _ := b.get(bindings, "one").Object["status"].(map[string]any); status["managedServer"] == nil {
			return fmt.Errorf("the status still is %v", status)
		}
		return nil
	})
	b.state(bindings, "one", "CREATED", "")
	b.unready(running, "")
	b.remove(bindings, "one")
	b.AwaitCaughtUp(topology.OpensearchSync)
	b.absent("rolesmapping/hr")
}

// unready waits until /readyz contains a text, or reports success if the text is empty.
func (b *testEnv) unready(running *testenv.RunningService, text string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		answer, err := http.Get(running.URL + "/readyz")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		data := make([]byte, 4096)
		n, _ := answer.Body.Read(data)
		if got := string(data[:n]); (answer.StatusCode == http.StatusOK) != (text == "") || !strings.Contains(got, text) {
			return fmt.Errorf("/readyz gets %d %s, want %q", answer.StatusCode, got, text)
		}
		return nil
	})
}
