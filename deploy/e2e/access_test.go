//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const resourceManager = "resourcemanager.miloapis.com"

// declare creates an object of a "group/Kind" in version v1alpha1, and returns its UID.
func declare(t *testing.T, objects dynamic.Interface, typ, name string, spec map[string]any) (uid string) {
	t.Helper()
	group, kind, _ := strings.Cut(typ, "/")
	gv := schema.GroupVersion{Group: group, Version: "v1alpha1"}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gv.String(), "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	if kind == "Role" || kind == "PolicyBinding" || kind == "Group" {
		u.SetNamespace("default")
	}
	made, err := objects.Resource(gv.WithResource(strings.ToLower(kind)+"s")).Namespace(u.GetNamespace()).Create(t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("%s %s: %v", kind, name, err)
	}
	return string(made.GetUID())
}

// iamBindingsGiveAccess binds a role on an organization to a user, checks the answers of the command line, and deletes
// the binding.
func iamBindingsGiveAccess(t *testing.T, m *machine) {
	t.Helper()
	objects := m.objects(t)
	const iam = "iam.miloapis.com"
	for _, kind := range []string{"Organization", "Project"} {
		spec := map[string]any{
			"serviceRef": map[string]any{"name": resourceManager}, "kind": kind, "singular": strings.ToLower(kind), "plural": strings.ToLower(kind) + "s",
			"permissions": []any{"get", "list"},
		}
		if kind == "Project" {
			spec["parentResources"] = []any{map[string]any{"apiGroup": resourceManager, "kind": "Organization"}}
		}
		declare(t, objects, iam+"/ProtectedResource", strings.ToLower(kind), spec)
	}
	acme := declare(t, objects, resourceManager+"/Organization", "acme", map[string]any{"type": "Standard"})
	declare(t, objects, resourceManager+"/Project", "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	alice := declare(t, objects, iam+"/User", "alice", map[string]any{"email": "alice@example.com"})
	declare(t, objects, iam+"/Role", "reader", map[string]any{"launchStage": "Beta", "includedPermissions": []any{resourceManager + "/projects.get"}})
	declare(t, objects, iam+"/PolicyBinding", "on-acme", map[string]any{
		"roleRef": map[string]any{"name": "reader"}, "subjects": []any{map[string]any{"kind": "User", "name": "alice", "uid": alice}},
		"resourceSelector": map[string]any{"resourceRef": map[string]any{
			"apiGroup": resourceManager, "kind": "Organization", "name": "acme", "uid": acme,
		}},
	})
	says := func(code int, want string, args ...string) func(context.Context) error {
		return func(context.Context) error {
			if out, got := m.ask(t, args...); got != code || !bytes.Contains(out, []byte(want)) {
				return fmt.Errorf("exit code %d, want %d and %q: %s", got, code, want, out)
			}
			return nil
		}
	}
	eventually(t, soon, "alice may", says(0, "yes: Role default/reader on Organization."+resourceManager+" acme", "can-i", "alice", "get", "projects/web"))
	eventually(t, soon, "it is explained", says(0, "└─ Organization."+resourceManager+" acme", "explain", "access", "alice", "get", "projects/web"))
	eventually(t, soon, "she is listed", says(0, "User alice", "who-can", "get", "projects/web"))
	eventually(t, soon, "what she may is listed", says(0, resourceManager+"/projects: get", "what-can", "alice"))
	bindings := objects.Resource(schema.GroupVersionResource{Group: iam, Version: "v1alpha1", Resource: "policybindings"}).Namespace("default")
	if err := bindings.Delete(t.Context(), "on-acme", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "alice may no more", says(1, "no: this requires", "can-i", "alice", "get", "projects/web"))
}

// iamSamplesAreReady applies the samples of IAM and checks the access of groups.
func iamSamplesAreReady(t *testing.T, m *machine) {
	t.Helper()
	for _, isReady := range applySamples(t, m, "iam.yaml") {
		eventually(t, soon, "it is ready", isReady)
	}
	if out, code := m.ask(t, "can-i", "bob", "get", "projects/web"); code != 1 {
		t.Errorf("bob is a member of a group without a role, and may: %s", out)
	}
	for group, above := range map[string]string{"oidc:auditors": "every Project.", "oidc:operators": "every Organization."} {
		out, code := m.ask(t, "explain", "access", "bob", "get", "projects/web", "--group", group)
		if code != 0 || !bytes.Contains(out, []byte("yes: ")) || !bytes.Contains(out, []byte("└─ "+above)) {
			t.Errorf("of %s it says, with code %d: %s", group, code, out)
		}
	}
}
