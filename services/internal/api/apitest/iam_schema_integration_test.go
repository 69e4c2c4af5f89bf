//go:build integration

package apitest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/testenv"
)

func TestIAMSchemaKeepsEveryFieldOfManifests(t *testing.T) {
	server := testenv.StartKube(t)
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

func TestIAMSchemaKeepsStatusesOfOtherServices(t *testing.T) {
	server := testenv.StartKube(t)
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
			updated, err := objectsAs(t, server, "", stored).UpdateStatus(t.Context(), stored, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Fatal(err)
			}
			got, _ := updated.Object["status"].(map[string]any)
			delete(got, "conditions") // a default
			round, _ := json.Marshal(got)
			again := map[string]any{}
			_ = json.Unmarshal(round, &again)
			if diff := cmp.Diff(want, again); diff != "" {
				t.Errorf("(-written +stored):\n%s", diff)
			}
		})
	}
}

func TestIAMSchemaRefusesInvalidObjects(t *testing.T) {
	server := testenv.StartKube(t)
	tests := map[string]struct {
		object string
		path   []string
		value  any
		// want is part of the refusal. If it is empty, the object must be accepted.
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
		"as many roles as can be":          {"nothing-yet", []string{"spec", "inheritedRoles"}, references(100), ""},
		"more roles than can be inherited": {"nothing-yet", []string{"spec", "inheritedRoles"}, references(101), "must have at most 100 items"},
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
			object := withField(t, manifestNamed(t, test.object), test.path, test.value)
			_, err := objectsAs(t, server, "", object).Create(t.Context(), object, dryRun())
			expectError(t, err, test.want)
		})
	}
}

// references returns references to n roles.
func references(n int) (all []any) {
	for i := range n {
		all = append(all, map[string]any{"name": fmt.Sprint("role-", i)})
	}
	return all
}

func TestIAMSchemaRefusesChangedReferences(t *testing.T) {
	server := testenv.StartKube(t)
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
			_, err := objectsAs(t, server, "", stored).Update(t.Context(), withField(t, stored, test.path, test.value), update)
			expectError(t, err, test.want)
		})
	}
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

// withField returns a copy of an object with one field set. It removes the field if value is nil.
func withField(t *testing.T, u *unstructured.Unstructured, path []string, value any) *unstructured.Unstructured {
	t.Helper()
	u = u.DeepCopy()
	if value == nil {
		unstructured.RemoveNestedField(u.Object, path...)
	} else if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		t.Fatal(err)
	}
	return u
}

// create creates an object. The object is deleted when the test ends.
func create(t *testing.T, server *testenv.KubeServer, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	api := objectsAs(t, server, "", u)
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
