//go:build integration

package v1alpha1_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/testbed"
)

func TestPublishedManifestsApplyAndNothingOfThemIsDropped(t *testing.T) {
	server := testbed.Kube(t)
	for _, manifest := range manifests(t) {
		stored := create(t, server, manifest)
		for field, value := range manifest.Object {
			if field == "metadata" {
				continue
			}
			if diff := cmp.Diff(value, stored.Object[field]); diff != "" {
				t.Errorf("%s %s is not as applied (-applied +stored):\n%s", manifest.GetKind(), manifest.GetName(), diff)
			}
		}
	}
}

func TestStatusesOfOthersAreKept(t *testing.T) {
	server := testbed.Kube(t)
	tests := map[string]string{
		"alice": `{"state": "Inactive", "registrationApproval": "Approved", "platformAccess": "Suspended", "emailVerification": "Verified",
			"lastLoginProvider": "passkey", "avatarUrl": "https://example.com/a.png"}`,
		"builder":                            `{"state": "Inactive", "email": "builder@example.com"}`,
		"compute.example.com-workload-admin": `{"parent": "p", "effectivePermissions": ["a", "b"], "observedGeneration": 1}`,
		"web":                                `{"suspensions": [{"reason": "Abuse", "reinstateAuthority": "Operator", "suspendedAt": "2026-01-01T00:00:00Z"}]}`,
	}
	for name, status := range tests {
		t.Run(name, func(t *testing.T) {
			stored := create(t, server, manifestNamed(t, name))
			var want map[string]any
			if err := json.Unmarshal([]byte(status), &want); err != nil {
				t.Fatal(err)
			}
			stored.Object["status"] = want
			updated, err := objects(t, server, stored).UpdateStatus(t.Context(), stored, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Fatal(err)
			}
			got, _ := updated.Object["status"].(map[string]any)
			delete(got, "conditions") // A default.
			round, _ := json.Marshal(got)
			again := map[string]any{}
			_ = json.Unmarshal(round, &again)
			if diff := cmp.Diff(want, again); diff != "" {
				t.Errorf("(-written +stored):\n%s", diff)
			}
		})
	}
}

// What is refused, and by which rule. A nil change is one that is accepted.
func TestWhatTheSchemaRefuses(t *testing.T) {
	server := testbed.Kube(t)
	tests := map[string]struct {
		object string
		path   []string
		value  any
		// want is what the refusal says; empty means that there is none.
		want string
	}{
		"a user without uid":               {"on-an-object", []string{"spec", "subjects"}, subjects("User", "alice", ""), "UID is required"},
		"a user without uid but a colon":   {"on-an-object", []string{"spec", "subjects"}, subjects("User", "system:alice", ""), "UID is required"},
		"an account without uid":           {"on-an-object", []string{"spec", "subjects"}, subjects("ServiceAccount", "a:b", ""), "UID is required"},
		"a group without uid":              {"on-an-object", []string{"spec", "subjects"}, subjects("Group", "staff", ""), "UID is required"},
		"a group of the system":            {"on-an-object", []string{"spec", "subjects"}, subjects("Group", "system:authenticated", ""), ""},
		"a group of the authenticator":     {"on-an-object", []string{"spec", "subjects"}, subjects("Group", "oidc:a_b", ""), ""},
		"a kind that is no subject":        {"on-an-object", []string{"spec", "subjects"}, subjects("Robot", "r", "u"), "Unsupported value"},
		"nobody":                           {"on-an-object", []string{"spec", "subjects"}, []any{}, "at least 1 items"},
		"an object and a kind":             {"on-an-object", []string{"spec", "resourceSelector", "resourceKind"}, map[string]any{"kind": "K"}, "exactly one of"},
		"neither object nor kind":          {"on-an-object", []string{"spec", "resourceSelector"}, map[string]any{}, "exactly one of"},
		"an object without uid":            {"on-an-object", []string{"spec", "resourceSelector", "resourceRef"}, map[string]any{"kind": "K", "name": "n"}, "uid: Required"},
		"a binding of nothing":             {"on-an-object", []string{"spec"}, nil, "spec: Required"},
		"a role without stage":             {"nothing-yet", []string{"spec"}, map[string]any{}, "launchStage: Required"},
		"a role inherited twice":           {"nothing-yet", []string{"spec", "inheritedRoles"}, []any{map[string]any{"name": "a"}, map[string]any{"name": "a"}}, "Duplicate value"},
		"as many roles as can be":          {"nothing-yet", []string{"spec", "inheritedRoles"}, roles(100), ""},
		"more roles than can be inherited": {"nothing-yet", []string{"spec", "inheritedRoles"}, roles(101), "must have at most 100 items"},
		"a kind without permissions":       {"resourcemanager-organization", []string{"spec", "permissions"}, nil, "permissions: Required"},
		"a subresource that cannot be one": {"resourcemanager-organization", []string{"spec", "subresources"}, subresource("a/b", "get"), "should match"},
		"a subresource without verbs":      {"resourcemanager-organization", []string{"spec", "subresources"}, subresource("status"), "at least 1 items"},
		"a verb that cannot be one":        {"resourcemanager-organization", []string{"spec", "subresources"}, subresource("status", "Get"), "should match"},
		"what unlisted subresources need":  {"resourcemanager-organization", []string{"spec", "unlistedSubresources"}, "Inherit", ""},
		"another way of these":             {"resourcemanager-organization", []string{"spec", "unlistedSubresources"}, "inherit", "Unsupported value"},
		"a user without email":             {"alice", []string{"spec", "email"}, nil, "email: Required"},
		"a state that is none":             {"builder", []string{"spec", "state"}, "Asleep", "Unsupported value"},
		"a group of no namespace":          {"alice-staff", []string{"spec", "groupRef"}, map[string]any{"name": "staff"}, "namespace: Required"},
		"an organization of no type":       {"acme", []string{"spec", "type"}, "Secret", "Unsupported value"},
		"a country of three letters":       {"newer", []string{"spec", "contactInfo", "address", "country"}, "GBR", "should match"},
		"a project of a user":              {"web", []string{"spec", "ownerRef", "kind"}, "User", "Unsupported value"},
		"a project of nobody":              {"web", []string{"spec"}, nil, "spec: Required"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := changed(t, manifestNamed(t, test.object), test.path, test.value)
			_, err := objects(t, server, object).Create(t.Context(), object, dryRun())
			expect(t, err, test.want)
		})
	}
}

// roles are so many that one inherits.
func roles(n int) (all []any) {
	for i := range n {
		all = append(all, map[string]any{"name": fmt.Sprint("role-", i)})
	}
	return all
}

func TestReferencesAreImmutableAndSubjectsAreNot(t *testing.T) {
	server := testbed.Kube(t)
	tests := map[string]struct {
		object string
		path   []string
		value  any
		want   string
	}{
		"another role":              {"on-an-object", []string{"spec", "roleRef", "name"}, "other", "RoleRef is immutable"},
		"a role elsewhere":          {"on-an-object", []string{"spec", "roleRef", "namespace"}, "other", "RoleRef is immutable"},
		"a namespace left out":      {"on-an-object", []string{"spec", "roleRef", "namespace"}, nil, "RoleRef is immutable"},
		"another object":            {"on-an-object", []string{"spec", "resourceSelector", "resourceRef", "name"}, "other", "ResourceSelector is immutable"},
		"its successor":             {"on-an-object", []string{"spec", "resourceSelector", "resourceRef", "uid"}, "other", "ResourceSelector is immutable"},
		"a kind for an object":      {"on-an-object", []string{"spec", "resourceSelector"}, map[string]any{"resourceKind": map[string]any{"kind": "Workload"}}, "ResourceSelector is immutable"},
		"another kind":              {"on-a-kind", []string{"spec", "resourceSelector", "resourceKind", "kind"}, "Project", "ResourceSelector is immutable"},
		"nothing, to begin anew":    {"on-a-kind", []string{"spec"}, nil, "spec: Required"},
		"other subjects":            {"on-a-kind", []string{"spec", "subjects"}, subjects("User", "bob", "u"), ""},
		"a person for a standard":   {"acme", []string{"spec", "type"}, "Personal", "organization type is immutable"},
		"another role for a role":   {"nothing-yet", []string{"spec", "includedPermissions"}, []any{"a/b.c"}, ""},
		"another organization":      {"web", []string{"spec", "ownerRef", "name"}, "newer", ""},
		"another user in the group": {"alice-staff", []string{"spec", "userRef", "name"}, "bob", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := create(t, server, manifestNamed(t, test.object))
			update := metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
			_, err := objects(t, server, stored).Update(t.Context(), changed(t, stored, test.path, test.value), update)
			expect(t, err, test.want)
		})
	}
}

func TestPrinterColumnsAreFilled(t *testing.T) {
	server := testbed.Kube(t)
	tests := map[string]map[string]string{
		"compute.example.com-workload":       {"Kind": "Workload", "Ready": "Unknown"},
		"compute.example.com-workload-admin": {"Display Name": "Workload Admin", "Launch Stage": "Beta", "Ready": "Unknown"},
		"on-an-object":                       {"Role": "compute.example.com-workload-admin", "Resource Kind": "Workload", "Resource Name": "web", "Ready": "Unknown"},
		"on-a-kind":                          {"Resource Kind": "Workload", "Ready": "Unknown"},
		"alice-staff":                        {"User": "alice", "Group": "staff"},
		"alice":                              {"Email": "alice@example.com", "Given Name": "Alice", "Family Name": "Doe", "State": "Active", "Ready": "Unknown"},
		"builder":                            {"State": "Active"},
		"acme":                               {"Display Name": "Acme", "Ready": "Unknown"},
		"web":                                {"Organization": "acme", "Ready": "Unknown"},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			row := columns(t, server, create(t, server, manifestNamed(t, name)))
			for column, value := range want {
				if row[column] != value {
					t.Errorf("%s is %q, want %q; there are %v", column, row[column], value, slices.Sorted(maps.Keys(row)))
				}
			}
		})
	}
}

// Once everybody has said what there is to say, no column of any kind is empty, but that of the one object that is meant where a
// whole kind is.
func TestNoPrinterColumnIsForNothing(t *testing.T) {
	server := testbed.Kube(t)
	seen := map[string]bool{}
	for _, manifest := range manifests(t) {
		if manifest.GetKind() == "Role" || manifest.GetKind() == "Organization" {
			manifest.SetAnnotations(map[string]string{"kubernetes.io/display-name": "Some Name"})
		}
		if manifest.GetKind() == "User" {
			manifest.Object["spec"] = map[string]any{"email": "a@example.com", "givenName": "A", "familyName": "B"}
		}
		stored := create(t, server, manifest)
		status, _ := stored.Object["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
		}
		status["conditions"] = []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Odd", "message": "odd", "lastTransitionTime": "2026-01-02T03:04:05Z",
		}}
		if stored.GetKind() == "ServiceAccount" {
			status["email"] = "a@example.com"
		}
		stored.Object["status"] = status
		if _, err := objects(t, server, stored).UpdateStatus(t.Context(), stored, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Fatal(err)
		}
		row := columns(t, server, stored)
		_, ofKind, _ := unstructured.NestedMap(stored.Object, "spec", "resourceSelector", "resourceKind")
		for column, value := range row {
			if value == "" && (!ofKind || column != "Resource Name") {
				t.Errorf("of %s %s, %s is empty", stored.GetKind(), stored.GetName(), column)
			}
		}
		if row["Ready"] != "True" || row["Age"] == "" {
			t.Errorf("%s %s is shown as %v", stored.GetKind(), stored.GetName(), row)
		}
		seen[stored.GetKind()] = true
	}
	if len(seen) != 9 {
		t.Errorf("there are manifests of %v", slices.Sorted(maps.Keys(seen)))
	}
}

func columns(t *testing.T, server *testbed.KubeServer, u *unstructured.Unstructured) map[string]string {
	t.Helper()
	cfg := dynamic.ConfigFor(server.Admin())
	cfg.GroupVersion = &schema.GroupVersion{}
	client, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	path := []string{"apis", u.GroupVersionKind().Group, u.GroupVersionKind().Version}
	if u.GetNamespace() != "" {
		path = append(path, "namespaces", u.GetNamespace())
	}
	path = append(path, resourceOf(u), u.GetName())
	raw, err := client.Get().AbsPath(path...).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	row := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		row[column.Name], _ = table.Rows[0].Cells[i].(string)
	}
	return row
}

func manifests(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	file, err := os.Open("testdata/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(file, 1024)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
}

func manifestNamed(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	for _, m := range manifests(t) {
		if m.GetName() == name {
			return m
		}
	}
	t.Fatalf("no manifest is named %s", name)
	return nil
}

func subjects(kind, name, uid string) []any {
	subject := map[string]any{"kind": kind, "name": name}
	if uid != "" {
		subject["uid"] = uid
	}
	return []any{subject}
}

func subresource(name string, verbs ...any) []any {
	return []any{map[string]any{"name": name, "permissions": append([]any{}, verbs...)}}
}

// changed is an object with one field set, or without it.
func changed(t *testing.T, u *unstructured.Unstructured, path []string, value any) *unstructured.Unstructured {
	t.Helper()
	u = u.DeepCopy()
	if value == nil {
		unstructured.RemoveNestedField(u.Object, path...)
	} else if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		t.Fatal(err)
	}
	return u
}

func dryRun() metav1.CreateOptions {
	return metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
}

// create makes an object for the time of a test.
func create(t *testing.T, server *testbed.KubeServer, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	api := objects(t, server, u)
	stored, err := api.Create(t.Context(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
	}
	t.Cleanup(func() {
		if err := api.Delete(context.WithoutCancel(t.Context()), u.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return stored
}

func objects(t *testing.T, server *testbed.KubeServer, u *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	return server.Objects(t).Resource(u.GroupVersionKind().GroupVersion().WithResource(resourceOf(u))).Namespace(u.GetNamespace())
}

func resourceOf(u *unstructured.Unstructured) string { return strings.ToLower(u.GetKind()) + "s" }

func expect(t *testing.T, err error, want string) {
	t.Helper()
	if err := unlike(err, want); err != nil {
		t.Error(err)
	}
}

// unlike says how a refusal differs from what is expected.
func unlike(err error, want string) error {
	switch {
	case want == "":
		return err
	case err == nil:
		return fmt.Errorf("accepted, want %q", want)
	case !strings.Contains(err.Error(), want):
		return fmt.Errorf("want %q: %w", want, err)
	}
	return nil
}
