//go:build integration

package apitest_test

import (
	"fmt"
	"maps"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/services/internal/testenv"
)

// statusRecorderClient returns a client as a user who may write statuses, and who has the verb record on some objects.
func statusRecorderClient(t *testing.T, server *testenv.KubeServer, u *unstructured.Unstructured, resource string, recorded ...string) dynamic.ResourceInterface {
	t.Helper()
	user := "recorder-of-" + resource + fmt.Sprint(recorded)
	in := func(resource, verb string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{"core.platform-mesh.io"}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names,
		}
	}
	rules := []rbacv1.PolicyRule{in(resource+"/status", "update"), in(resource, "get")}
	if len(recorded) > 0 {
		rules = append(rules, in(resource, "record", recorded...))
	}
	server.GrantUser(t, "", user, rules...)
	return objectsAs(t, server, user, u)
}

// Services act on the records in statuses. So a user who may write statuses may neither change nor remove them.
func TestStorePolicyRequiresRecordForStatusFields(t *testing.T) {
	server := testenv.StartKube(t)
	tuple := func(user string) []any {
		return []any{map[string]any{"object": "doc:1", "relation": "viewer", "user": user}}
	}
	fields := map[string][2]any{
		"storeId":              {"01J8", "01J9"},
		"authorizationModelId": {"01JA", "01JB"},
		"modelDigest":          {"a", "b"},
		"managedTuples":        {tuple("user:ann"), tuple("user:beth")},
		"ledger":               {ledger(1), ledger(2)},
	}
	for kind, resource := range map[string]string{"Store": "stores", "AuthorizationModel": "authorizationmodels"} {
		t.Run(resource, func(t *testing.T) {
			object := manifest(kind)
			own := map[string][2]any{"live": {live("model", "a"), live("model", "b")}}
			if kind == "Store" {
				own = map[string][2]any{"adopted": {true, false}, "managedTuplesStoreId": {"01J8", "01J9"}, "live": {live("coreModule", "a"), live("coreModule", "b")}}
				own["removedTuples"] = [2]any{removed("01J8"), removed("01J9")}
			}
			maps.Copy(own, fields)
			stored := create(t, server, object)
			service, another := statusRecorderClient(t, server, stored, resource, stored.GetName()), statusRecorderClient(t, server, stored, resource, "another")
			for field, values := range own {
				path := []string{"status", field}
				testenv.Eventually(t, soon, func() error {
					now, err := service.UpdateStatus(t.Context(), withField(t, stored, path, values[0]), metav1.UpdateOptions{})
					if err == nil {
						stored = now
					}
					return err
				})
				for what, value := range map[string]any{"another value": values[1], "no value": nil} {
					testenv.Eventually(t, soon, func() error {
						_, err := another.UpdateStatus(t.Context(), withField(t, stored, path, value), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
						if err := compareError(err, "needs the verb record on "+resource); err != nil {
							return fmt.Errorf("%s, %s: %w", field, what, err)
						}
						return nil
					})
				}
			}
			says := withField(t, stored, []string{"status", "observedGeneration"}, int64(1))
			if _, err := another.UpdateStatus(t.Context(), says, metav1.UpdateOptions{}); err != nil {
				t.Errorf("a status without a change of the record: %v", err)
			}
		})
	}
}

func ledger(revision int64) map[string]any {
	return map[string]any{"revision": revision, "encoding": "zstd", "data": "KLUv/QQA"}
}

func removed(storeID string) map[string]any {
	return map[string]any{"storeId": storeID, "since": "2026-01-02T03:04:05Z", "encoding": "zstd", "data": "KLUv/QQA"}
}

func live(field, module string) map[string]any {
	is := map[string]any{"generation": int64(1), field: "module " + module}
	if field == "model" {
		is["storeUID"] = "1"
	}
	return is
}

func manifest(kind string) *unstructured.Unstructured {
	spec := map[string]any{"coreModule": "module core\n"}
	if kind != "Store" {
		spec = map[string]any{"model": "module a\n", "storeRef": map[string]any{"name": "recorded"}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.platform-mesh.io/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "recorded"}, "spec": spec,
	}}
}
